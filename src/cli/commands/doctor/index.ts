import type { Codec } from '../../../codecs/codec.ts';
import type { Config } from '../../../config/config.ts';
import type { Environment } from '../../../config/environment.ts';
import { describeProblem } from '../../../config/file/problem.ts';
import { problemOfServing } from '../../../config/servable.ts';
import { suggest } from '../../../lib/text/did-you-mean.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../../command.ts';
import { describeSource, fileOf, loadForCommand } from '../../load-config.ts';
import { plural, wrap } from '../../terminal.ts';
import { version } from '../version.ts';
import { type Finding, finding } from './diagnosis.ts';
import { checkEngines } from './engines.ts';
import {
  checkCertificate,
  checkConfigFile,
  checkModels,
  checkOpenFiles,
  checkPort,
  checkWritable,
  toolFinding,
} from './machine.ts';
import { probeProvider } from './provider.ts';

export const DOCTOR: CommandSpec = {
  name: 'doctor',
  others: ['diagnose', 'health'],
  summary: 'test the configuration, this machine and every provider, and say what to do',
  description: [
    'Checks the configuration, this machine, the engines, MCP servers and HTTP tools (none of their tools is run), and every provider: its name, the connection, each key, the model list, and an answer of one token (which the vendor may charge for). No secret is printed.',
  ],
  options: {
    provider: { value: 'NAME', summary: 'only this provider' },
    model: {
      short: 'm',
      value: 'NAME',
      summary: 'try this model',
      default: 'the first that the provider names',
    },
    'no-completion': { summary: 'do not request an answer' },
    timeout: {
      value: 'SECONDS',
      summary: 'how long to wait for each request',
      default: '20',
      range: [1, 600],
    },
    json: JSON_OPTION,
  },
  examples: {
    'hopgate doctor': 'Tests everything.',
    'hopgate doctor --provider glm --model glm-4.7': 'Tests one model of one provider.',
  },
  exits: { 0: 'everything passed', 1: 'something failed' },
  run: runDoctor,
};

async function runDoctor(invocation: Invocation): Promise<number> {
  const findings = await examine(invocation);
  const ok = findings.every(({ status }) => status !== 'fail');
  if (invocation.flag('json')) {
    invocation.out.line(JSON.stringify({ ok, findings }, null, 2));
  } else printFindings(invocation, findings);
  return ok ? 0 : 1;
}

async function examine(invocation: Invocation): Promise<readonly Finding[]> {
  const { io } = invocation;
  const result = await loadForCommand(invocation);
  const file = fileOf(result);
  const machine = [checkWritable('home', io.environment.home), checkOpenFiles()];
  const serving = result.ok ? problemOfServing(result.config, result.warnings) : undefined;
  const warnings = (serving ?? result).warnings.map((w) =>
    finding('config', 'warn', describeProblem(w, file)),
  );
  if (serving?.problem !== undefined) {
    machine.unshift(finding('config', 'fail', describeProblem(serving.problem, file)));
  }
  if (!result.ok) {
    const problems = result.problems.map((p) =>
      finding('config', 'fail', describeProblem(p, file)),
    );
    return [...problems, ...warnings, ...machine];
  }
  const { config } = result;
  machine.push(...checkModels(config, io.environment.home, Date.now()));
  const source = `${describeSource(config.source)}${config.source.kind === 'file' ? ' is valid' : ''}`;
  const hint =
    config.source.kind === 'demo'
      ? config.source.path === undefined
        ? 'Set a key such as ANTHROPIC_API_KEY, or run "hopgate init".'
        : 'Set a key such as ANTHROPIC_API_KEY, or name a provider in the file.'
      : undefined;
  const status = config.source.kind === 'demo' ? 'warn' : 'ok';
  if (config.samples.mode !== 'off') machine.push(checkWritable('samples', config.samples.dir));
  const openFile = checkConfigFile(config);
  if (openFile !== undefined) machine.push(openFile);
  const certificate = checkCertificate(config.listen, Date.now());
  if (certificate !== undefined) machine.push(certificate);
  const timeoutMs = (invocation.number('timeout') ?? 20) * 1000;
  const services = await invocation.services();
  const names = selectedProviders(invocation, Object.keys(config.providers));
  const [port, engines, tools, ...providers] = await Promise.all([
    checkPort(config.listen, io.fetch),
    checkEngines({
      config,
      home: io.environment.home,
      version: version.version,
      stateMoves: services.stateMoves,
    }),
    invocation.text('provider') === undefined
      ? services.checkTools(config, version.version, timeoutMs)
      : [],
    ...names.map((name) => {
      const provider = config.providers[name]!;
      return probeProvider(provider, {
        proxied: io.environment.proxies,
        upstreamPath: pathFor(services.protocols[provider.protocol]),
        completion: !invocation.flag('no-completion'),
        model: invocation.text('model'),
        timeoutMs,
        targets: targetsOf(config, name),
        proxy: proxyFor(provider.baseUrl, io.environment),
      });
    }),
  ]);
  return [
    finding('config', status, source, hint),
    ...warnings,
    ...machine,
    port,
    ...engines,
    ...tools.map(toolFinding),
    ...providers.flat(),
  ];
}

function targetsOf({ routes, aliases }: Config, provider: string): readonly string[] {
  const all = [
    ...routes.flatMap(({ to }) => to.map(({ target }) => target)),
    ...Object.values(aliases),
  ];
  return all
    .filter((target) => target.startsWith(`${provider}/`))
    .map((target) => target.slice(provider.length + 1));
}

function selectedProviders({ text }: Invocation, names: readonly string[]): readonly string[] {
  const only = text('provider');
  if (only === undefined) return names;
  if (names.includes(only)) return [only];
  const near = suggest(only, names);
  const meant = near === undefined ? `Configured: ${names.join(', ')}.` : `Did you mean "${near}"?`;
  throw new UsageError(`There is no provider "${only}". ${meant}`);
}

/** The proxy that fetch takes from the environment for this URL. */
function proxyFor(baseUrl: string, { proxyFor, noProxy }: Environment): string | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const { protocol, hostname } = new URL(baseUrl);
  if (noProxy(hostname)) return undefined;
  return proxyFor(protocol);
}

const MARKS = {
  ok: ['green', 'ok  '],
  warn: ['yellow', 'warn'],
  fail: ['red', 'FAIL'],
  skip: ['dim', 'skip'],
} as const;

function printFindings({ out }: Invocation, findings: readonly Finding[]): void {
  const widest = Math.max(...findings.map(({ about }) => about.length));
  const indent = widest + 8;
  for (const { about, status, message, hint } of findings) {
    const [style, mark] = MARKS[status];
    const lines = wrap(message, out.width, indent);
    out.line(`${about.padEnd(widest)}  ${out.paint(style, mark)}  ${lines[0]!.trimStart()}`);
    for (const line of lines.slice(1)) out.line(line);
    if (hint !== undefined)
      for (const line of wrap(`→ ${hint}`, out.width, indent)) out.line(out.paint('dim', line));
  }
  const count = (status: Finding['status']) => findings.filter((f) => f.status === status).length;
  out.line();
  const failed = count('fail');
  const warned = count('warn');
  if (failed === 0) {
    out.line(
      warned === 0 ? 'Everything is fine.' : `Everything works, with ${plural(warned, 'warning')}.`,
    );
  } else out.line(`${failed} ${failed === 1 ? 'thing needs' : 'things need'} attention.`);
}

/** Where a protocol asks a model: at one path, or at one of the model's own. */
const pathFor =
  (protocol: Codec) =>
  (model: string): string =>
    protocol.addressed?.(new Uint8Array(), model, 'whole').path ?? protocol.upstreamPath;
