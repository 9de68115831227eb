/** The API calls of the page, one function for each route. */

import type {
  BisectRequest,
  ConversationView,
  DiffView,
  EventsView,
  Info,
  JobEvent,
  JobStarted,
  JobsList,
  JobView,
  LiveEvent,
  RecordingRequest,
  ReplayRequest,
  SampleDetail,
  SamplesPage,
  SamplesQuery,
  SessionsList,
  SessionView,
  SpendPlan,
  Stats,
  Stories,
} from '../../api/api.ts';
import { ask, follow, json, jsonOf, key, ROOT, send } from './fetching.ts';
import type { Query } from './route.ts';

const sample = (id: string) => `/samples/${encodeURIComponent(id)}`;
const stagePath = (id: string, stage: string) => `${sample(id)}/edges/${encodeURIComponent(stage)}`;

export const getInfo = () => json<Info>('/info');

export const switchRecording = (body: RecordingRequest) =>
  json<Info>('/recording', { method: 'POST', body });

/** A page of the list that is under way before the list asks for it; undefined if the call fails. */
let ahead: { readonly asked: string; readonly page: Promise<SamplesPage | undefined> } | undefined;

/** Asks for a page of the list before {@link getSamples} does, which takes it if it asks for the same. */
export function askAhead(query: SamplesQuery): void {
  // If the key is refused, the call for the information says so.
  const page = jsonOf<SamplesPage>(send(`${ROOT}/samples`, key.get(), { query }));
  ahead = { asked: JSON.stringify(query), page: page.catch(() => undefined) };
}

export async function getSamples(query: SamplesQuery, signal: AbortSignal): Promise<SamplesPage> {
  const early = ahead;
  ahead = undefined;
  const page = early?.asked === JSON.stringify(query) ? await early.page : undefined;
  signal.throwIfAborted();
  return page ?? json('/samples', { query, signal });
}

export const getStories = (ids: readonly string[], signal: AbortSignal) =>
  json<Stories>('/stories', { query: { ids: ids.join(',') }, signal });

export const getSessions = (signal?: AbortSignal) => json<SessionsList>('/sessions', { signal });

export const getSession = (id: string, signal?: AbortSignal) =>
  json<SessionView>(`/sessions/${encodeURIComponent(id)}`, { signal });

export const getLive = (query: Query, signal: AbortSignal) =>
  follow<LiveEvent>('/live', { query, signal });

export const getSample = (id: string, signal?: AbortSignal) =>
  json<SampleDetail>(sample(id), { signal });

export const getConversation = (id: string, stage: string, chars: number, signal?: AbortSignal) =>
  json<ConversationView>(`${stagePath(id, stage)}/conversation`, {
    query: { text: chars },
    signal,
  });

export const getEvents = (id: string, stage: string, from: number, signal?: AbortSignal) =>
  json<EventsView>(`${stagePath(id, stage)}/events`, { query: { from, limit: 2000 }, signal });

export const getDiff = (id: string, a: string, b: string, signal?: AbortSignal) =>
  json<DiffView>(`${sample(id)}/diff`, { query: { a, b }, signal });

export const getStats = (query: Query, buckets: number, signal?: AbortSignal) =>
  json<Stats>('/stats', { query: { ...query, buckets }, signal });

export interface Body {
  readonly text: string;
  /** Bytes of the whole body; `text` may be only its beginning. */
  readonly bytes: number;
  readonly whole: boolean;
}

/** The beginning of a body. @param most bytes */
export async function getBody(
  id: string,
  stage: string,
  most: number,
  signal?: AbortSignal,
): Promise<Body> {
  const response = await ask(stagePath(id, stage), { query: { bytes: most }, signal });
  const content = await response.arrayBuffer();
  const total = response.headers.get('x-hopgate-bytes');
  const bytes = total === null ? content.byteLength : Number(total);
  const text = new TextDecoder().decode(content);
  return { text, bytes, whole: content.byteLength >= bytes };
}

export const getCurl = async (id: string, stage: string | undefined) =>
  (await ask(`${sample(id)}/curl`, { query: { stage } })).text();

export const getExport = async (id: string, redact: boolean) =>
  (await ask(`${sample(id)}/export`, { query: { redact: redact ? 1 : undefined } })).blob();

export type JobRequest = ReplayRequest | BisectRequest;

export const startJob = (kind: JobView['kind'], body: JobRequest) =>
  json<JobStarted>(`/${kind}`, { method: 'POST', body });

/** What a job would cost, or what is wrong with it. */
export const planJob = (kind: JobView['kind'], body: JobRequest, signal: AbortSignal) =>
  json<SpendPlan>(`/${kind}/plan`, { method: 'POST', body, signal });

export const getJobs = (signal?: AbortSignal) => json<JobsList>('/jobs', { signal });

export const followJob = (job: string, signal: AbortSignal) =>
  follow<JobEvent>(`/jobs/${encodeURIComponent(job)}`, { signal });

export const cancelJob = async (job: string) => {
  await ask(`/jobs/${encodeURIComponent(job)}`, { method: 'DELETE' });
};
