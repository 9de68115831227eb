/** Files and batches at vendors: routed by the models of their requests, bound to the key that made them, reserved and settled. */

import { asGatewayError, departure, GatewayError, invalid } from '../../conversation/errors.ts';
import {
  checkVendorIds,
  mayIssueVendorIds,
  mayNameVendorIds,
  notMadeHere,
  type VendorIdKind,
  vendorIdsIssued,
  vendorIdsNamed,
} from '../../conversation/vendor-ids.ts';
import { decodeJson, notAnObject } from '../../gateway/client-request.ts';
import { ExchangeSummaryBuilder } from '../../gateway/exchange-summary.ts';
import { ownHeaders } from '../../gateway/response-headers.ts';
import { errorOf, failedResponse } from '../../gateway/responses.ts';
import { ExchangeSession } from '../../gateway/tries/exchange-session.ts';
import { accountOf } from '../../gateway/tries/open-account.ts';
import type { Account, Exchange, FailedOutcome } from '../../gateway/types.ts';
import { asBuffer } from '../../lib/bytes/bytes.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import { nativeHeaders } from '../../lib/http/native-headers.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { batchesOf } from '../../lib/loop/batches.ts';
import { type RoutedTarget, targetOf, targetsForNamed } from '../../routing/index.ts';
import { secretsOf } from '../../upstream/secrets.ts';
import { attempt } from '../attempt.ts';
import type { Endpoint } from '../endpoint.ts';
import { FormSpool } from '../form/spool.ts';
import type { EndpointOptions } from '../pipeline.ts';
import { answerResponse } from '../response.ts';
import { triedAt } from '../run-request.ts';
import type { AnswerOutcome, EndpointRequest, RunningEndpoint } from '../types.ts';
import { UsageScan } from '../usage.ts';
import { type FoundRequest, linesOf, messagesBatch, RequestSums } from './batch-requests.ts';
import { BatchSettlement, type Used, usedIn } from './batch-results.ts';
import { BatchTries } from './batch-tries.ts';
import { listPage, ownResultsUrl, readPage } from './client-pages.ts';
import { FileForm } from './file-form.ts';
import { type Operation, whyNot } from './operations.ts';
import { providersFor, type Serving } from './providers.ts';
import {
  chunksOf,
  hasNoAnswers,
  isOver,
  jsonOf,
  noId,
  streamOf,
  withoutEndpoint,
} from './vendor-answers.ts';
import type { BatchModel, VendorApi, VendorObject, VendorObjects } from './vendor-objects.ts';

export interface BatchOptions extends Omit<EndpointOptions, 'record'> {
  /** Opens the store with its first use. */
  readonly objects: () => VendorObjects;
  /** Notes ids that answers give out. Returns at once and never throws. */
  readonly learnIds: (owner: string, ids: readonly string[], provider: string) => void;
}

/** A client's call of an operation. */
export interface AskedOperation {
  readonly operation: Operation;
  /** '' where the path has none. */
  readonly id: string;
  /** The address by which the client reaches this gateway: `http://127.0.0.1:5520`. */
  readonly origin: string;
}

/** Answers an exchange. Never rejects. */
export type ServeOperation = (exchange: Exchange, asked: AskedOperation) => Promise<Response>;

export function createBatches(options: BatchOptions): ServeOperation {
  return async (exchange, asked) => {
    const { operation } = asked;
    const run = new Run(exchange, asked, options);
    try {
      const creates = operation.does === 'create';
      if (creates) run.checkTool();
      await run.open(creates);
      return await run.answer();
    } catch (thrown) {
      const error = exchange.signal.aborted ? departure(exchange.signal) : asGatewayError(thrown);
      return errorOf(exchange, error, run.summary);
    }
  };
}

const NOTHING = { model: undefined, stream: false };
/** Running batches of a page that are asked for at a time. */
const ASKED_AT_ONCE = 8;
/** A batch is no request of one model. */
const ANY_MODEL = '*';

type Answered = AnswerOutcome | FailedOutcome;

/** Facts of a creation about its requests, and how it pays. */
interface Creation {
  readonly path: string;
  readonly contentType: string;
  readonly serving: readonly Serving[];
  /** At this provider; undefined: of no model. */
  models(provider: string): readonly BatchModel[] | undefined;
  bodyFor: EndpointRequest['bodyFor'];
  /** The tries pay; else they are free. */
  readonly pays: boolean;
  /** Undefined: any that is awake. */
  readonly upstreamKey?: string | undefined;
}

/** Twice the requests that any vendor takes in a batch; more results are not believed. */
const MAX_RESULTS = 200_000;

class Run {
  readonly summary: ExchangeSummaryBuilder;
  readonly #services: ReturnType<BatchOptions['services']>;
  readonly #api: VendorApi;
  readonly #secrets: readonly string[];
  readonly #spools: FormSpool[] = [];
  /** That the requests of a batch name. */
  readonly #named = new Map<string, VendorIdKind>();
  #account: Account | undefined;

  constructor(
    private readonly exchange: Exchange,
    private readonly asked: AskedOperation,
    private readonly options: BatchOptions,
  ) {
    this.#services = options.services();
    this.#api = exchange.protocol.name === 'anthropic-messages' ? 'anthropic' : 'openai';
    this.#secrets = secretsOf(this.#services.table.config);
    this.summary = new ExchangeSummaryBuilder(exchange, undefined, (summary) => {
      exchange.form?.cancel();
      for (const spool of this.#spools) void spool.close();
      options.onEnd(summary);
    });
  }

  get #objects(): VendorObjects {
    return this.options.objects();
  }

  /** The list of tools is checked here: nothing checks it when the vendor runs a batch. @throws GatewayError permission */
  checkTool(): void {
    const { policy } = this.exchange.principal;
    const tool = this.asked.operation.kind === 'file' ? 'files' : 'batches';
    if (policy.everyTool || policy.allowsTool(tool)) return;
    const message = `This API key may not use ${tool}: '${tool}' is not among its tools.`;
    throw new GatewayError('permission', message, { code: 'tool_not_allowed', retryable: false });
  }

  async open(costs: boolean): Promise<void> {
    const { accounts } = this.options;
    this.#account = await accountOf(this.exchange, NOTHING, accounts, costs);
    if (this.#account !== undefined) this.summary.opened(this.#account);
    const admission = this.#services.slots.take(this.exchange);
    this.summary.admitted(typeof admission === 'function' ? admission : await admission);
  }

  answer(): Promise<Response> {
    const { operation } = this.asked;
    switch (operation.does) {
      case 'create':
        if (operation.kind === 'file') return this.#upload();
        return this.#api === 'anthropic' ? this.#createMessages() : this.#createOfFile();
      case 'list':
        return this.#list();
      case 'content':
        return this.#content();
      default:
        return this.#one();
    }
  }

  // Files and batches that are made.

  async #upload(): Promise<Response> {
    const { form, headers, search } = this.exchange;
    if (form === undefined) {
      throw invalid('A file is sent as a form (multipart/form-data).', 'content-type');
    }
    const spool = this.#spool();
    const contentType = headers.get('content-type') ?? '';
    const file = await FileForm.read(form, contentType, spool);
    const sums = new RequestSums();
    const { bodyBytes } = this.#services.table.config.limits;
    const isBatch = this.#api === 'openai' && file.purpose === 'batch';
    if (isBatch) await file.requests(bodyBytes, (found) => this.#see(found, sums));
    const model = new URLSearchParams(search).get('model') ?? undefined;
    const serving = this.#serving(isBatch ? sums.asked : model === undefined ? [] : [model]);
    return this.#create({
      path: '/files',
      contentType,
      serving,
      models: (provider) =>
        isBatch ? sums.models((asked) => nameAt(serving, provider, asked)) : undefined,
      bodyFor: ({ provider }) => {
        const nameOf = (asked: string) => nameAt(serving, provider, asked);
        return isBatch && sums.asked.some((asked) => nameOf(asked) !== asked)
          ? file.renamed(bodyBytes, sums.growth(nameOf), nameOf)
          : file.whole();
      },
      pays: false,
    });
  }

  async #createMessages(): Promise<Response> {
    const bytes = asBuffer(this.exchange.body);
    const sums = new RequestSums();
    await messagesBatch(bytes, (found) => this.#see(found, sums));
    const serving = this.#serving(sums.asked);
    return this.#create({
      path: '/messages/batches',
      contentType: 'application/json',
      serving,
      models: (provider) => sums.models((asked) => nameAt(serving, provider, asked)),
      bodyFor: ({ provider }) =>
        messagesBatch(bytes, ({ model }) => nameAt(serving, provider, model)),
      pays: true,
    });
  }

  async #createOfFile(): Promise<Response> {
    const { body, owner } = this.exchange;
    const value = decodeJson(body);
    if (!isObject(value)) throw notAnObject(body);
    const { input_file_id: id } = value;
    if (typeof id !== 'string') {
      throw invalid("Missing or invalid required parameter: 'input_file_id'.", 'input_file_id');
    }
    const file = await this.#objects.get(owner, id);
    if (file === undefined) throw notMadeHere('file', id);
    const { models, provider: name } = file;
    if (models === undefined) {
      throw invalid(
        `The file '${id}' holds no requests: it was not uploaded with purpose 'batch'.`,
        'input_file_id',
      );
    }
    const provider = this.#providerOf(file);
    const targets = new Map(models.map(({ asked, model }) => [asked, targetOf(provider, model)]));
    return this.#create({
      path: '/batches',
      contentType: 'application/json',
      serving: [{ provider: name, targets }],
      models: () => models,
      bodyFor: () => body,
      pays: true,
      upstreamKey: file.upstreamKey,
    });
  }

  /** The key may use every model that a request names beside its own. Its files are looked up for all together. */
  #see({ body, ...found }: FoundRequest, sums: RequestSums): undefined {
    sums.add({ body, ...found });
    if (mayNameVendorIds(asBuffer(body))) {
      const named = vendorIdsNamed(tryParse(asBuffer(body).toString()));
      for (const [id, kind] of named) this.#named.set(id, kind);
    }
    const { principal, protocol } = this.exchange;
    if (principal.policy.everyModel) return;
    const targets = this.#serving([found.model]).flatMap(({ targets }) => [...targets.values()]);
    targetsForNamed(principal, { bytes: body }, protocol.name, targets);
  }

  #serving(models: readonly string[]): readonly Serving[] {
    const about = { api: this.#api, path: `/v1${pathOf(this.asked.operation)}` };
    return providersFor(this.exchange, this.#services.table, this.#account, about, models);
  }

  async #create(creation: Creation): Promise<Response> {
    const { serving, path, models } = creation;
    await checkVendorIds(this.#named, this.exchange.owner, this.options.foreignIds);
    const first = serving.map(({ targets, routed }) => routed ?? [...targets.values()][0]!);
    const { kind } = this.asked.operation;
    const tries = new BatchTries(this.#account, this.exchange.sessionId, this.exchange.id);
    const [asked] = serving[0]!.targets.keys();
    if (asked !== undefined) this.summary.received({ model: asked, stream: false });
    let status = 0;
    const running = this.#running(path, {
      method: 'POST',
      once: true,
      onStatus: (last) => {
        status = last;
      },
      contentType: creation.contentType,
      bodyFor: creation.bodyFor,
      beginTry: (target, key, number) =>
        creation.pays ? tries.begin(target, key, number, models(target.provider) ?? []) : undefined,
    });
    const { upstreamKey } = creation;
    const outcome =
      upstreamKey === undefined
        ? await triedAt(running, first, this.options.onRetry)
        : await this.#tryAt(running, first[0]!, upstreamKey);
    if (outcome.kind === 'failed')
      return this.#failed(running, withoutEndpoint(outcome, status, path));
    const object = jsonOf(outcome);
    if (typeof object.id !== 'string') throw noId(outcome);
    const { provider } = outcome.target;
    await this.#objects.put({
      owner: this.exchange.owner,
      id: object.id,
      kind,
      api: this.#api,
      provider,
      upstreamKey: outcome.upstreamKey,
      made: Date.now(),
      object,
      models: models(provider),
      due: tries.reserved(),
    });
    return this.#answered(running, outcome, object);
  }

  // Files and batches that are there.

  async #list(): Promise<Response> {
    const { owner, search } = this.exchange;
    const objects = this.#objects;
    const { kind } = this.asked.operation;
    const page = readPage(search, this.#api);
    const found = await objects.page(owner, kind, this.#api, page);
    const shown: JsonObject[] = [];
    const kept = found.slice(0, page.limit);
    for (const some of batchesOf(kept, ASKED_AT_ONCE)) {
      shown.push(...(await Promise.all(some.map((one) => this.#now(one)))));
    }
    const list = listPage(shown, found.length > page.limit, page, this.#api, search);
    const data = list.data.map((one) => this.#own(one));
    const own = { requestId: this.exchange.id, target: undefined, notes: undefined };
    const headers = ownHeaders(FlatHeaders.of({ 'content-type': 'application/json' }), own);
    this.summary.addHeaders(headers, true);
    this.summary.end(200, undefined, undefined);
    return new Response(JSON.stringify({ ...list, data }), { headers: nativeHeaders(headers) });
  }

  /** A batch that is under way may have moved on. */
  async #now(one: VendorObject): Promise<JsonObject> {
    if (one.kind === 'file' || isOver(one.object, this.#api)) return one.object;
    const path = pathOf(this.asked.operation);
    const running = this.#running(`${path}/${encodeURIComponent(one.id)}`, { method: 'GET' });
    const outcome = await this.#tryAt(running, this.#routedOf(one), one.upstreamKey);
    if (outcome.kind === 'failed') return one.object;
    const object = jsonOf(outcome);
    await this.#saw(one, object);
    return object;
  }

  /** One file or batch: as it is, cancelled, or removed. */
  async #one(): Promise<Response> {
    const { operation } = this.asked;
    const one = await this.#object();
    const running = this.#running(this.#path(), { method: operation.method });
    const outcome = await this.#tryAt(running, this.#routedOf(one), one.upstreamKey);
    if (outcome.kind === 'failed') return this.#failed(running, outcome);
    const object = jsonOf(outcome);
    if (operation.does === 'remove') await this.#objects.remove(one.owner, one.id);
    else await this.#saw(one, object);
    return this.#answered(running, outcome, object);
  }

  async #content(): Promise<Response> {
    const one = await this.#object();
    const objects = this.#objects;
    const batch = one.batch === undefined ? one : await objects.get(one.owner, one.batch);
    const running = this.#running(this.#path(), { method: 'GET' }, true);
    const outcome = await this.#tryAt(running, this.#routedOf(one), one.upstreamKey);
    if (outcome.kind === 'failed') return this.#failed(running, outcome);
    if (batch?.kind !== 'batch' || batch.due === undefined || this.#account === undefined) {
      return answerResponse(running, plain(outcome), this.options.onStream);
    }
    return this.#settled(running, outcome, batch);
  }

  /** The results, which the client gets when they are counted: one that leaves in their middle has cost the same. */
  async #settled(
    running: RunningEndpoint,
    outcome: AnswerOutcome,
    batch: VendorObject,
  ): Promise<Response> {
    // It outlives the exchange, which ends when its answer begins.
    const spool = new FormSpool(this.options.folder);
    try {
      for await (const chunk of chunksOf(outcome)) await spool.append(chunk);
      await this.#settle(batch, spool);
    } catch (thrown) {
      await spool.close();
      throw thrown;
    }
    const { status, headers } = answerResponse(
      running,
      { ...plain(outcome), first: [], source: undefined },
      this.options.onStream,
    );
    return new Response(streamOf(spool), { status, headers });
  }

  /** @param results undefined: none of its requests was answered */
  async #settle(batch: VendorObject, results: FormSpool | undefined): Promise<void> {
    const objects = this.#objects;
    const account = this.#account;
    if (account === undefined || batch.due === undefined) return;
    const { protocol } = this.exchange;
    // Before anything is taken: a process that is killed while it reads leaves the amount to the next reader.
    const used = results === undefined ? [] : await this.#read(batch, results);
    const due = await objects.takeDue(batch.owner, batch.id);
    if (due === undefined) return;
    let settlement: BatchSettlement;
    try {
      settlement = await BatchSettlement.begin(batch, protocol.name, due, account);
    } catch (thrown) {
      await objects.giveBackDue(batch.owner, batch.id);
      throw thrown;
    }
    for (const one of used) settlement.add(one);
    settlement.end();
  }

  /** Reads the usage of each request, and learns whose the ids in the answers are. */
  async #read(batch: VendorObject, results: FormSpool): Promise<readonly Used[]> {
    const all: Used[] = [];
    for await (const line of linesOf(results.read(0, results.size), Number.MAX_SAFE_INTEGER)) {
      const text = line.toString();
      const used = usedIn(text, this.#api, this.exchange.protocol);
      if (used !== undefined && all.length < MAX_RESULTS) all.push(used);
      if (!mayIssueVendorIds(text)) continue;
      const issued = [...vendorIdsIssued(tryParse(text)).keys()];
      if (issued.length > 0) this.options.learnIds(batch.owner, issued, batch.provider);
    }
    return all;
  }

  /** The vendor has shown an object: the files of its results are this client's, too. */
  async #saw(one: VendorObject, object: JsonObject): Promise<void> {
    const objects = this.#objects;
    if (object.id !== one.id) return;
    await objects.put({ ...one, object });
    if (one.kind !== 'batch') return;
    for (const [key, batch] of [
      ['output_file_id', one.id],
      ['error_file_id', undefined],
    ] as const) {
      const id = object[key];
      if (typeof id !== 'string') continue;
      const file = { id, object: 'file', purpose: 'batch_output', created_at: seconds() };
      const { due: _, models: __, ...kept } = one;
      await objects.put({ ...kept, id, kind: 'file', made: Date.now(), object: file, batch });
    }
    if (isOver(object, this.#api) && hasNoAnswers(object, this.#api)) {
      await this.#settle(one, undefined);
    }
  }

  async #object(): Promise<VendorObject> {
    const { id, operation } = this.asked;
    const found = await this.#objects.get(this.exchange.owner, id);
    // Made by a vendor's code tool: an answer has given out its id.
    if (found?.kind === 'issued' && operation.kind === 'file') {
      return { ...found, kind: 'file', api: this.#api };
    }
    if (found === undefined || found.kind !== operation.kind || found.api !== this.#api) {
      throw notMadeHere(operation.kind, id);
    }
    return found;
  }

  // Requests to vendors, and answers to the client.

  #path(): string {
    const { operation, id } = this.asked;
    return operation.path.replace(':id', encodeURIComponent(id));
  }

  #providerOf({ provider: name, id, kind }: VendorObject) {
    const provider = memberOf(this.#services.table.config.providers, name);
    if (provider === undefined) {
      throw new GatewayError(
        'not_found',
        `The ${kind} '${id}' is at provider ${name}, which is not configured any more.`,
        { code: 'provider_gone', retryable: false },
      );
    }
    return provider;
  }

  #routedOf(one: VendorObject): RoutedTarget {
    return targetOf(this.#providerOf(one), one.models?.[0]?.model ?? ANY_MODEL);
  }

  async #tryAt(
    running: RunningEndpoint,
    routed: RoutedTarget,
    upstreamKey: string | undefined,
  ): Promise<Answered> {
    const { keys } = this.#services.upstream(routed);
    // A key that was replaced may be of the same account.
    const lease = keys.leaseNamed(upstreamKey) ?? keys.leaseAny();
    const outcome = await attempt(running, routed, lease, 1);
    this.summary.hopEnded(outcome, 1);
    lease.settleStatus(outcome.kind === 'answer' ? outcome.status : 0, keys.now);
    return outcome;
  }

  #running(path: string, request: Partial<EndpointRequest>, isFile = false): RunningEndpoint {
    const api = this.#api;
    const endpoint: Endpoint = {
      name: this.asked.operation.name,
      path: api === 'anthropic' ? `/v1${path}` : path,
      isFile,
      whyNot: (provider) => whyNot(provider, api),
    };
    return {
      exchange: this.exchange,
      endpoint,
      request: { ...NO_REQUEST, ...request },
      services: this.#services,
      account: this.#account,
      session: new ExchangeSession(this.exchange, new Uint8Array()),
      summary: this.summary,
      secrets: this.#secrets,
      routeName: undefined,
      onSend: () => this.summary.sent(),
      onKeyRefused: this.options.onKeyRefused,
    };
  }

  #spool(): FormSpool {
    const spool = new FormSpool(this.options.folder);
    this.#spools.push(spool);
    return spool;
  }

  #failed(running: RunningEndpoint, outcome: FailedOutcome): Response {
    const { summary, secrets } = running;
    return failedResponse({ exchange: this.exchange, summary, secrets }, outcome);
  }

  #answered(running: RunningEndpoint, outcome: AnswerOutcome, object: JsonObject): Response {
    const own = this.#own(object);
    const first = own === object ? outcome.first : [Buffer.from(JSON.stringify(own))];
    return answerResponse(running, { ...plain(outcome), first }, this.options.onStream);
  }

  /** The results of Messages are read at this gateway, too. */
  #own(object: JsonObject): JsonObject {
    return this.#api === 'anthropic' ? ownResultsUrl(object, this.asked.origin) : object;
  }
}

const NO_REQUEST: EndpointRequest = {
  model: ANY_MODEL,
  stream: false,
  bytes: 0,
  contentType: 'application/json',
  spent: false,
  beginTry: () => undefined,
  bodyFor: () => undefined,
  recorded: () => new Uint8Array(),
  close: () => {},
};

const seconds = (): number => Math.floor(Date.now() / 1000);

const pathOf = ({ path }: Operation): string => path.split('/:')[0]!;

const nameAt = (serving: readonly Serving[], provider: string, asked: string): string =>
  serving.find((one) => one.provider === provider)?.targets.get(asked)?.target.model ?? asked;

/** Nothing of it is counted here. */
const plain = (outcome: AnswerOutcome): AnswerOutcome => ({
  ...outcome,
  usage: new UsageScan(),
  paid: undefined,
});
