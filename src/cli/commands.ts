/** The command table: parsing, help and whatever is generated later all read it. The first entry is the default. */

import { runCheck } from './check.ts';
import type { CommandSpec, OptionSpec } from './command.ts';
import { runCompletions, SHELLS } from './completions/index.ts';
import { ACTIONS, runDaemon } from './daemon/index.ts';
import { runDoctor } from './doctor/index.ts';
import { runInit } from './init/index.ts';
import { runLint, SHORT_NAMES } from './lint.ts';
import { runMan } from './man.ts';
import { runModels } from './models.ts';
import { runRepair } from './repair.ts';
import { SAMPLE_COMMANDS } from './sample-commands.ts';
import { runServe } from './serve.ts';
import { CLIENT_NAMES, runSetup } from './setup/index.ts';
import { runVersion } from './version.ts';

const json = (summary = 'print JSON, for scripts'): OptionSpec => ({ name: 'json', summary });
const yes: OptionSpec = { name: 'yes', short: 'y', summary: 'do not ask' };
const protocols = ['openai-chat', 'openai-responses', 'anthropic-messages'];

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'serve',
    group: 'Run',
    summary: 'run the gateway',
    description: [
      'Listens where the configuration says and prints one line on stdout once it can answer: "hopgate listening on http://HOST:PORT". Logs go to stderr.',
      'SIGTERM and SIGINT let open streams finish, SIGHUP loads the configuration again.',
    ],
    options: [
      {
        name: 'port',
        short: 'p',
        value: 'N',
        summary: 'port to listen on; 0 picks a free one',
        default: 'that of the configuration, else 5520',
        range: [0, 65_535],
      },
      {
        name: 'host',
        value: 'ADDRESS',
        summary: 'address to listen on',
        default: 'that of the configuration, else 127.0.0.1',
      },
      {
        name: 'drain',
        value: 'SECONDS',
        summary: 'how long to wait for open streams when stopping',
        default: 'limits.drain of the configuration, else 30',
        range: [0, 86_400],
      },
      {
        name: 'workers',
        value: 'N',
        summary: 'processes that share the port',
        default: 'workers of the configuration, else 1',
        range: [1, 64],
      },
      {
        name: 'log-level',
        value: 'LEVEL',
        summary: 'what is logged',
        choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
      },
      {
        name: 'log-format',
        value: 'FORMAT',
        summary: 'how it is logged; auto: pretty on a terminal, else JSON lines',
        choices: ['auto', 'json', 'pretty'],
      },
    ],
    examples: [
      {
        line: 'hopgate',
        summary: 'Serves on 127.0.0.1:5520 with the API keys of the environment.',
      },
      {
        line: 'hopgate serve --config ./hopgate.yaml --port 0',
        summary: 'A file of your own, and any free port.',
      },
    ],
    exits: [
      [0, 'stopped as asked'],
      [1, 'the configuration cannot be used, or the port is taken'],
    ],
    run: runServe,
  },
  {
    name: 'service',
    group: 'Run',
    summary: 'run the gateway in the background, from login or boot on',
    description: [
      'By systemd on Linux, by launchd on macOS. install writes one file, enables it and starts it; done again it changes nothing, or brings the file up to date. uninstall takes back exactly that. A file that somebody else wrote, or changed, is not touched.',
      'As root the service of the machine is meant, otherwise that of the user.',
    ],
    arguments: [{ name: 'action', summary: 'what to do', required: true, choices: ACTIONS }],
    options: [
      { name: 'user', summary: 'for this user, from login on' },
      { name: 'system', summary: 'for the machine, from boot on, under an account of its own' },
      { name: 'dry-run', short: 'n', summary: 'only show what would be written and run' },
      { name: 'no-start', summary: 'install: enable it, but do not start it now' },
      { name: 'force', summary: 'also where the file was changed since it was written' },
      {
        name: 'root',
        value: 'DIR',
        summary: 'install, uninstall: below this folder, starting nothing, for images',
      },
      {
        name: 'lines',
        value: 'N',
        summary: 'logs: how many of the last lines',
        default: '50',
        range: [1, 1_000_000],
      },
      { name: 'follow', short: 'f', summary: 'logs: go on as they come' },
    ],
    examples: [
      { line: 'hopgate service install --dry-run', summary: 'What would be done.' },
      { line: 'hopgate service install', summary: 'From now on, whenever you log in.' },
      { line: 'hopgate service logs --follow', summary: 'What it says.' },
    ],
    exits: [
      [0, 'done, or nothing to do'],
      [1, 'not done, and why'],
      [3, 'status: it does not run'],
    ],
    run: runDaemon,
  },
  {
    name: 'init',
    group: 'Set up',
    summary: 'write a configuration by answering a few questions',
    description: [
      'Vendors whose keys stand in the environment are preselected; keys are referred to, not copied. A file that exists is never written over without --force.',
    ],
    options: [
      { ...yes, summary: 'ask nothing; take what the environment offers' },
      { name: 'force', summary: 'write over a file that exists' },
      { name: 'providers', value: 'NAMES', summary: 'vendors, separated by commas' },
      {
        name: 'listen',
        value: 'HOST:PORT',
        summary: 'address and port',
        default: '127.0.0.1:5520',
      },
      { name: 'auth', summary: 'make up a key that clients must send' },
    ],
    examples: [
      { line: 'hopgate init', summary: 'Asks, and writes ~/.config/hopgate/hopgate.yaml.' },
      {
        line: 'hopgate init --yes --providers glm,deepseek --config ./hopgate.yaml',
        summary: 'For scripts: two vendors, a file of your own.',
      },
    ],
    exits: [
      [0, 'written'],
      [1, 'not written: the file exists, or it was cancelled'],
    ],
    run: runInit,
  },
  {
    name: 'setup',
    group: 'Set up',
    summary: 'point a client at this gateway, or back',
    description: [
      'Shows what would change in the settings of the client, asks, and writes. Everything else in the file stays; the bytes of before are kept, and --revert puts them back.',
      'claude: the env block of ~/.claude/settings.json. codex: a provider in ~/.codex/config.toml. opencode: a provider in ~/.config/opencode/opencode.json.',
    ],
    arguments: [
      { name: 'client', summary: 'what to set up', required: true, choices: CLIENT_NAMES },
    ],
    options: [
      {
        name: 'model',
        short: 'm',
        value: 'NAME',
        summary: 'the model to ask for',
        default: 'claude: none where a route takes claude-*; else the first of the configuration',
      },
      { name: 'small-model', value: 'NAME', summary: 'claude: the model for small side jobs' },
      {
        name: 'context',
        value: 'N',
        summary: 'context window of the model in tokens, where it is not known here',
        range: [1000, 100_000_000],
      },
      {
        name: 'protocol',
        value: 'NAME',
        summary: 'opencode: what it should speak',
        choices: protocols,
        default: 'openai-chat',
      },
      { name: 'url', value: 'URL', summary: 'where the gateway is, when not on this machine' },
      { name: 'key', value: 'KEY', summary: 'the key to send', default: 'the first of auth.keys' },
      { name: 'show', summary: 'only show what would be written' },
      { name: 'dry-run', summary: 'the same as --show' },
      json('with --show: print JSON'),
      { name: 'revert', summary: 'put back what was there before' },
      yes,
    ],
    examples: [
      { line: 'hopgate setup claude', summary: 'Claude Code asks this gateway from now on.' },
      {
        line: 'hopgate setup codex --model glm-4.7 --yes',
        summary: 'Codex, with one model, unasked.',
      },
      { line: 'hopgate setup claude --revert', summary: 'Takes it back.' },
    ],
    exits: [
      [0, 'written, or nothing to do'],
      [1, 'not written'],
    ],
    run: runSetup,
  },
  {
    name: 'check',
    group: 'Look',
    summary: 'say whether the configuration is right',
    description: [
      'Problems are told as FILE:LINE:COLUMN, with what was probably meant. --schema prints the JSON Schema of the file, for editors.',
    ],
    options: [json(), { name: 'schema', summary: 'print the JSON Schema of hopgate.yaml' }],
    examples: [
      {
        line: 'hopgate check --config ./hopgate.yaml',
        summary: 'Checks a file before it is used.',
      },
      { line: 'hopgate check --schema > hopgate.schema.json', summary: 'Completion in an editor.' },
    ],
    exits: [
      [0, 'it can be used'],
      [1, 'it cannot'],
    ],
    run: runCheck,
  },
  {
    name: 'doctor',
    group: 'Look',
    summary: 'try everything that can be wrong, and say what to do',
    description: [
      'Checks the configuration, this machine, and every provider: its name, the connection, each key, the model list, and an answer of one token (which the vendor may charge for). No secret is printed.',
    ],
    options: [
      { name: 'provider', value: 'NAME', summary: 'only this provider' },
      {
        name: 'model',
        short: 'm',
        value: 'NAME',
        summary: 'try this model',
        default: 'the first that the provider names',
      },
      { name: 'no-completion', summary: 'do not ask for an answer' },
      {
        name: 'timeout',
        value: 'SECONDS',
        summary: 'patience with each request',
        default: '20',
        range: [1, 600],
      },
      json(),
    ],
    examples: [
      { line: 'hopgate doctor', summary: 'Everything.' },
      {
        line: 'hopgate doctor --provider glm --model glm-4.7',
        summary: 'One model of one provider.',
      },
    ],
    exits: [
      [0, 'nothing failed'],
      [1, 'something did'],
    ],
    run: runDoctor,
  },
  {
    name: 'models',
    group: 'Look',
    summary: 'list models and where they go, or explain a request',
    description: [
      '--explain takes the name of a model, a request body as JSON, or @FILE with one, and tells which rule decides and why.',
    ],
    options: [
      { name: 'explain', value: 'REQUEST', summary: 'a model name, a JSON body, or @FILE' },
      {
        name: 'protocol',
        value: 'NAME',
        summary: 'with --explain: what the client speaks',
        choices: protocols,
        default: 'guessed from the body',
      },
      json(),
    ],
    examples: [
      { line: 'hopgate models', summary: 'A table.' },
      { line: 'hopgate models --explain claude-sonnet-4-5', summary: 'Where a name goes.' },
      { line: 'hopgate models --explain @request.json', summary: 'Where a recorded request goes.' },
    ],
    exits: [
      [0, 'told'],
      [1, 'the configuration cannot be used, or nothing takes the request'],
    ],
    run: runModels,
  },
  {
    name: 'repair',
    group: 'Look',
    summary: 'make tool histories valid for an API, offline',
    description: [
      'Reads request bodies from stdin, one a line, and writes {"body":…,"notes":[…]} for each: what the gateway would send, and what it changed. A body that needs nothing comes back as the very text it was; a line that is no request becomes {"error":…}.',
      'A body is taken to be of the protocol of --to, unless it can only be of another: then it is converted.',
    ],
    options: [
      { name: 'to', value: 'PROTOCOL', summary: 'the API that shall take it', choices: protocols },
      { name: 'profile', value: 'NAME', summary: 'the vendor that shall take it', default: 'none' },
      {
        name: 'from',
        value: 'PROFILE',
        summary: 'the vendor whose answers are in the history; others do not take its signatures',
        default: 'told from the signatures themselves',
      },
      { name: 'jsonl', summary: 'a JSON body a line, the only form there is' },
    ],
    examples: [
      {
        line: 'hopgate repair --to anthropic-messages --jsonl < bodies.jsonl',
        summary: 'What Anthropic would refuse of these, made valid.',
      },
    ],
    exits: [[0, 'every line was answered']],
    run: runRepair,
  },
  {
    name: 'lint',
    group: 'Look',
    summary: 'say what a vendor or a client would refuse of a request or a stream',
    description: [
      "Reads one request body (JSON) or one recorded stream (SSE) from FILE or stdin, and names every place that breaks a rule, in the vendor's own words where they are known.",
      'In a stream a place begins with the number of the event, from 0.',
    ],
    arguments: [{ name: 'file', summary: 'what to read; stdin when missing or -' }],
    options: [
      {
        name: 'as',
        value: 'PROTOCOL',
        summary: 'what it is',
        choices: [...protocols, ...Object.keys(SHORT_NAMES)],
        default: 'told from its words',
      },
      { name: 'stream', summary: 'it is a stream' },
      { name: 'vendor', value: 'PROFILE', summary: 'also what this vendor does not take' },
      {
        name: 'model',
        short: 'm',
        value: 'NAME',
        summary: 'with --vendor: the model that shall read it',
        default: 'that of the body',
      },
      json(),
    ],
    examples: [
      { line: 'hopgate lint request.json', summary: 'One request.' },
      {
        line: 'hopgate lint answer.sse --as messages --stream --json',
        summary: 'One recorded stream, for scripts.',
      },
      {
        line: 'hopgate lint request.json --vendor glm',
        summary: 'Would GLM take it, too?',
      },
    ],
    exits: [
      [0, 'nothing to complain about'],
      [1, 'there are findings'],
    ],
    run: runLint,
  },
  {
    name: 'completions',
    group: 'Set up',
    summary: 'print what a shell needs to complete hopgate command lines',
    description: ['Made from the same table as this help, so it knows every command and option.'],
    arguments: [{ name: 'shell', summary: 'which one', required: true, choices: SHELLS }],
    examples: [
      {
        line: 'hopgate completions bash > ~/.local/share/bash-completion/completions/hopgate',
        summary: 'For every bash from now on; "source" takes it for one.',
      },
      {
        line: 'hopgate completions fish > ~/.config/fish/completions/hopgate.fish',
        summary: 'For every fish from now on.',
      },
    ],
    exits: [[0, 'printed']],
    run: (invocation) => runCompletions(invocation, COMMANDS),
  },
  {
    name: 'man',
    group: 'Look',
    summary: 'print the manual page',
    description: ['In the form that man reads: everything --help tells of every command, in one.'],
    examples: [{ line: 'hopgate man > hopgate.1', summary: 'A file; "man ./hopgate.1" shows it.' }],
    exits: [[0, 'printed']],
    run: (invocation) => runMan(invocation, COMMANDS),
  },
  ...SAMPLE_COMMANDS,
  {
    name: 'version',
    group: 'Look',
    summary: 'print the version',
    description: ['Version, commit (of a build), bun and platform.'],
    options: [json()],
    examples: [{ line: 'hopgate version --json', summary: 'For scripts and bug reports.' }],
    exits: [[0, 'always']],
    run: runVersion,
  },
];
