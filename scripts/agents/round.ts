/** One agent against one kind of vendor: a tool loop that must leave a file behind. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanEnv, startGateway } from '../../test/support/binary.ts';
import {
  call,
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
  toolNames,
  toolResults,
} from '../../test/support/fake-upstream/index.ts';
import type { Agent } from './agent.ts';

const PATIENCE = 300_000;

// Nothing listens there: what an agent sends anywhere but to loopback is refused at once.
const NOWHERE = 'http://127.0.0.1:9';
const OFFLINE = Object.fromEntries(
  ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
    .flatMap((name) => [name, name.toLowerCase()])
    .map((name) => [name, NOWHERE])
    .concat(['NO_PROXY', 'no_proxy'].map((name) => [name, '127.0.0.1,localhost'])),
);

const FILE = 'proof.txt';

/**
 * A vendor that asks for one tool call and, once it has the result, says the last words. To an agent without tools, it
 * says what to write.
 */
function scriptVendor(upstream: FakeUpstream, { task }: Agent, proof: string, last: string): void {
  upstream.answerWith((request) => {
    const protocol = request.protocol!;
    if ('answer' in task) return say(task.answer(FILE, proof));
    // Titles, summaries and the like are asked without tools.
    if (!toolNames(protocol, request.body).includes(task.tool)) return say('A short title');
    if (toolResults(protocol, request.body).size > 0) return say(last);
    const shell = `printf %s ${proof} > ${FILE} && cat ${FILE}`;
    const asked = call({ name: task.tool, arguments: task.arguments(shell) });
    return { ...asked, parts: [{ kind: 'text', text: 'I will write it.' }, ...asked.parts] };
  });
}

/** Runs an agent to its end, `env` laid over its own, and gives what it printed. */
export async function runAgent(
  agent: Agent,
  places: { readonly base: string; readonly work: string; readonly home: string },
  prompt: string,
  more: Readonly<Record<string, string>> = {},
): Promise<{ stdout: string; stderr: string; code: number }> {
  const { base, work, home } = places;
  const { command, env } = await agent.start(base, home, prompt);
  const child = Bun.spawn([...command], {
    cwd: work,
    env: { ...cleanEnv(home), ...OFFLINE, ...env, ...more },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const late = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(late);
  if (agent.daemon !== undefined) await endDaemons(agent.daemon, home);
  return { stdout, stderr, code };
}

/** Ends what an agent leaves running, known by its command line and this run's home. Only Linux tells both. */
async function endDaemons(word: string, home: string): Promise<void> {
  for (const pid of new Bun.Glob('[0-9]*').scanSync({ cwd: '/proc', onlyFiles: false })) {
    const told = async (name: string) =>
      Bun.file(`/proc/${pid}/${name}`)
        .text()
        .catch(() => '');
    if (!(await told('cmdline')).includes(word)) continue;
    if ((await told('environ')).includes(`HOME=${home}\0`)) process.kill(Number(pid), 'SIGTERM');
  }
}

/** What the vendor saw amiss, or undefined: strict checks passed, and the result came back. */
function vendorComplaint(upstream: FakeUpstream, protocol: Protocol, { task }: Agent) {
  if (upstream.refusals.length > 0) return `the vendor refused: ${upstream.refusals.join(' | ')}`;
  if (upstream.modelRequests.length === 0) return 'the vendor got no request';
  if ('answer' in task) return undefined;
  const rounds = upstream.modelRequests.filter((one) =>
    toolNames(protocol, one.body).includes(task.tool),
  );
  const answered = rounds.some((one) => toolResults(protocol, one.body).size === 1);
  if (!answered) {
    const tools = toolNames(protocol, upstream.modelRequests[0]!.body).join(', ');
    return `the vendor got ${rounds.length} requests, none with the tool's result; tools: ${tools}`;
  }
  return undefined;
}

/**
 * Runs the round; `direct` leaves the gateway out, for the agent's own protocol.
 * @returns what went wrong, or undefined
 */
export async function round(
  agent: Agent,
  protocol: Protocol,
  direct: boolean,
): Promise<string | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'hopgate-agent-'));
  const work = join(scratch, 'work');
  const home = join(scratch, 'home');
  await mkdir(work);
  await mkdir(home);
  const upstream = await startFakeUpstream({
    protocols: [protocol],
    ...(direct ? {} : { keys: ['sk-upstream'], models: ['m1'] }),
  });
  const gateway = direct
    ? undefined
    : await startGateway({
        providers: {
          vendor: {
            protocol,
            base_url: upstream.baseUrl(protocol),
            keys: ['sk-upstream'],
            models: ['m1'],
          },
        },
        routes: [{ to: ['vendor/m1'] }],
      });
  try {
    const proof = `proof-${crypto.randomUUID()}`;
    const last = `Done: the file holds ${proof}.`;
    scriptVendor(upstream, agent, proof, last);
    const base = gateway?.url ?? upstream.origin;
    const run = await runAgent(agent, { base, work, home }, `Create ${FILE} using the shell.`);
    const told = () => {
      const logs = gateway === undefined ? '' : `\n--- gateway\n${gateway.stderr().slice(-2000)}`;
      return `\n--- agent\n${run.stdout.slice(-2000)}\n${run.stderr.slice(-1000)}${logs}`;
    };
    const complaint = vendorComplaint(upstream, protocol, agent);
    if (complaint !== undefined) return complaint + told();
    const onSocket = gateway?.logs().some((line) => line.websocket === true) ?? false;
    if (agent.websocket === true && !onSocket) return `nothing came on a WebSocket${told()}`;
    const file = await Bun.file(join(work, FILE))
      .text()
      .catch(() => undefined);
    if (file?.trim() !== proof) return `${FILE} holds ${JSON.stringify(file)}${told()}`;
    const words = agent.finalText(run.stdout);
    if ('tool' in agent.task && words.trim() !== last)
      return `the agent's last words were ${JSON.stringify(words)}${told()}`;
    if (run.code !== 0) return `the agent ended with code ${run.code}${told()}`;
    return undefined;
  } finally {
    await gateway?.stop();
    await upstream.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}
