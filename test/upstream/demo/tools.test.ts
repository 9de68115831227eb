/** When the demo model calls tools, with what, and when it stops. */

import { describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { violation } from '../../../src/lib/json/json-schema.ts';
import { ask, callsOf, object, type Reply, textOf, tool } from './ask.ts';

const text = { type: 'string' };
const weather = tool('get_weather', 'Current weather for a city', object({ city: text }));
const time = tool(
  'get_time',
  'Current local time',
  object({ zone: { type: 'string', enum: ['utc', 'local'] } }),
);
const write = tool(
  'Write',
  'Writes a file to the local filesystem.',
  object({
    file_path: {
      type: 'string',
      description: 'The absolute path to the file to write (must be absolute, not relative)',
    },
    content: text,
  }),
);
const bash = tool(
  'Bash',
  'Executes a bash command and returns its output.',
  object({ command: text, timeout: { type: 'number' }, description: text }, ['command']),
);
const execCommand = tool(
  'exec_command',
  'Runs a command in a PTY.',
  object({ cmd: text, login: { type: 'boolean' } }, ['cmd']),
);
const runCommands = tool(
  'run_commands',
  'Run shell commands.',
  object({ commands: { type: 'array', items: text } }),
);
const shellArgv = tool(
  'shell',
  'Runs a shell command.',
  object({ command: { type: 'array', items: text }, workdir: text }, ['command']),
);
const read = tool(
  'Read',
  'Reads a file.',
  object({ file_path: text, limit: { type: 'integer' } }, ['file_path']),
);

/** Gives every call of the answer a result and asks again. */
async function next(messages: JsonObject[], reply: Reply, more: JsonObject, result = 'ok') {
  const { message } = reply.choices[0];
  messages.push(message as JsonObject);
  for (const { id } of message.tool_calls ?? [])
    messages.push({ role: 'tool', tool_call_id: id, content: result });
  return ask(messages, more);
}

describe('files and commands', () => {
  test('a file to write goes to the writing tool, absolute where its schema says so', async () => {
    const reply = await ask(
      [
        { role: 'system', content: 'Primary working directory: /home/ann/project\nBe helpful.' },
        { role: 'user', content: 'create a file hello.txt with "hello there"' },
      ],
      { tools: [bash, read, write] },
    );
    expect(reply.choices[0].finish_reason).toBe('tool_calls');
    expect(callsOf(reply)).toEqual([
      {
        name: 'Write',
        input: { file_path: '/home/ann/project/hello.txt', content: 'hello there' },
      },
    ]);
  });

  test('no working directory known: the temporary directory, never the root', async () => {
    const [call] = callsOf(await ask('create notes.md containing hi', { tools: [write] }));
    expect(call?.input).toEqual({ file_path: '/tmp/notes.md', content: 'hi' });
  });

  const wordings: [string, string, string][] = [
    ['create a file hello.txt with hello world.', 'hello.txt', 'hello world'],
    ['Write "a b" to `dir/out.txt`', 'dir/out.txt', 'a b'],
    ['make a file called x.json with the content {"a":1}', 'x.json', '{"a":1}'],
    ['创建文件 hello.txt，内容为“你好”', 'hello.txt', '你好'],
    ['把 "你好" 写入 out.txt', 'out.txt', '你好'],
  ];
  for (const [question, path, content] of wordings) {
    test(question, async () => {
      const plain = tool('write_file', 'Write a file', object({ path: text, content: text }));
      expect(callsOf(await ask(question, { tools: [plain] }))).toEqual([
        { name: 'write_file', input: { path, content } },
      ]);
    });
  }

  const shells: [string, JsonObject, (command: string) => unknown][] = [
    ['a command string', bash, (command) => ({ command })],
    ['cmd', execCommand, (cmd) => ({ cmd })],
    ['a list of command lines', runCommands, (line) => ({ commands: [line] })],
    ['an argv', shellArgv, (line) => ({ command: ['bash', '-lc', line] })],
  ];
  for (const [name, shell, input] of shells) {
    test(`with a shell that takes ${name}, the file is written by a command`, async () => {
      const [call] = callsOf(
        await ask("Create proof.txt with it's ok using the shell.", { tools: [shell] }),
      );
      const line = `printf '%s\\n' 'it'\\''s ok' > 'proof.txt'`;
      expect(call?.input).toEqual(input(line) as Record<string, unknown>);
    });
  }

  test('asked for the shell, the shell is taken though there is a writing tool', async () => {
    expect(
      callsOf(await ask('Create proof.txt using the shell.', { tools: [write, bash] }))[0]?.name,
    ).toBe('Bash');
  });

  test('a file name cannot become a second command', async () => {
    const [call] = callsOf(
      await ask('create a file "$(touch pwned).txt" with x', { tools: [bash] }),
    );
    expect(call?.input.command).toBe(`printf '%s\\n' 'x' > '$(touch pwned).txt'`);
  });

  test('a command is run, a file is read', async () => {
    expect(callsOf(await ask('run `ls -la`', { tools: [bash, read] }))).toEqual([
      { name: 'Bash', input: { command: 'ls -la' } },
    ]);
    expect(callsOf(await ask('read package.json', { tools: [bash, read] }))).toEqual([
      { name: 'Read', input: { file_path: 'package.json' } },
    ]);
  });

  test('a freeform patch tool gets a patch', async () => {
    const patch = { type: 'custom', custom: { name: 'apply_patch', description: 'Edit files' } };
    const reply = await ask('create a.txt with hi', { tools: [patch] });
    expect(reply.choices[0].message.tool_calls?.[0]).toMatchObject({
      type: 'custom',
      custom: {
        name: 'apply_patch',
        input: '*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n',
      },
    });
  });
});

describe('choosing', () => {
  test('a question about what a tool does calls it', async () => {
    expect(callsOf(await ask('What is the weather in Paris?', { tools: [time, weather] }))).toEqual(
      [{ name: 'get_weather', input: { city: 'Paris' } }],
    );
    expect(callsOf(await ask('北京的天气怎么样？', { tools: [time, weather] }))).toEqual([
      { name: 'get_weather', input: { city: '北京' } },
    ]);
    expect(callsOf(await ask('please use get_time', { tools: [weather, time] }))[0]?.name).toBe(
      'get_time',
    );
  });

  test('small talk calls nothing, whatever is offered', async () => {
    const tools = [
      bash,
      read,
      write,
      weather,
      time,
      tool('Agent', 'Launch a new agent to handle complex tasks.', object({ prompt: text })),
      tool('Skill', 'Execute a skill within the conversation', object({ name: text })),
    ];
    for (const question of [
      'hello',
      'Who are you?',
      'Write a poem about the sea',
      'say something new',
      'count to 3',
      'What can you do for me today?',
      '你好，你是谁？',
    ]) {
      const reply = await ask(question, { tools });
      expect(callsOf(reply)).toEqual([]);
      expect(reply.choices[0].finish_reason).toBe('stop');
    }
  });

  test('two are called where two are asked for, unless parallel calls are off', async () => {
    const question = 'Get the weather in Paris and Rome in parallel';
    const cities = callsOf(await ask(question, { tools: [weather] })).map(
      (call) => call.input.city,
    );
    expect(cities).toEqual(['Paris', 'Rome']);
    expect(
      callsOf(await ask(question, { tools: [weather], parallel_tool_calls: false })),
    ).toHaveLength(1);
    const both = callsOf(
      await ask('Tell me both the weather and the time', { tools: [weather, time] }),
    );
    expect(both.map((call) => call.name).toSorted()).toEqual(['get_time', 'get_weather']);
  });

  test('forced, it calls though nothing fits; named, it calls that one', async () => {
    expect(
      callsOf(await ask('hello', { tools: [time, weather], tool_choice: 'required' })),
    ).toHaveLength(1);
    const choice = { type: 'function', function: { name: 'get_time' } };
    expect(callsOf(await ask('say hi', { tools: [weather, time], tool_choice: choice }))).toEqual([
      { name: 'get_time', input: { zone: 'utc' } },
    ]);
    const allowed = {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'required',
        tools: [{ type: 'function', function: { name: 'get_time' } }],
      },
    };
    expect(
      callsOf(await ask('weather?', { tools: [weather, time], tool_choice: allowed }))[0]?.name,
    ).toBe('get_time');
  });

  test('tool_choice none is kept, the tour included', async () => {
    for (const question of ['weather in Paris', '/demo tools', 'create a.txt with b']) {
      expect(
        callsOf(await ask(question, { tools: [weather, write], tool_choice: 'none' })),
      ).toEqual([]);
    }
  });
});

describe('the loop', () => {
  test('after the results it ends with a summary of them, forced or not', async () => {
    for (const more of [
      { tools: [weather] },
      { tools: [weather], tool_choice: 'required' },
    ] as JsonObject[]) {
      const messages: JsonObject[] = [{ role: 'user', content: 'weather in Oslo?' }];
      const reply = await next(messages, await ask(messages, more), more, 'Rain, 7 degrees');
      expect(reply.choices[0].finish_reason).toBe('stop');
      expect(textOf(reply)).toContain('get_weather returned “Rain, 7 degrees”');
      expect(textOf(reply)).toContain('hopgate demo model');
    }
  });

  test('a reminder behind the results does not start it over; a new question does', async () => {
    const more = { tools: [weather] };
    const messages: JsonObject[] = [{ role: 'user', content: 'weather in Oslo?' }];
    const first = await ask(messages, more);
    await next(messages, first, more);
    messages.push({
      role: 'user',
      content: '<system-reminder>\nweather tools are there\n</system-reminder>',
    });
    expect(callsOf(await ask(messages, more))).toEqual([]);
    messages.push({ role: 'user', content: 'and the weather in Rome?' });
    expect(callsOf(await ask(messages, more))).toEqual([
      { name: 'get_weather', input: { city: 'Rome' } },
    ]);
  });

  test('/demo tools runs through every tool once, with arguments each schema accepts, and ends', async () => {
    const tools = [bash, read, write, weather, time, runCommands];
    const messages: JsonObject[] = [{ role: 'user', content: '/demo tools' }];
    let reply = await ask(messages, { tools });
    const called: string[] = [];
    for (let round = 0; round < 20; round++) {
      const calls = callsOf(reply);
      if (calls.length === 0) break;
      expect(calls).toHaveLength(1);
      const { name, input } = calls[0]!;
      called.push(name);
      const { parameters } = tools
        .map((t) => t.function as JsonObject)
        .find((f) => f.name === name)!;
      expect(violation(input as JsonObject, parameters as JsonObject)).toBeUndefined();
      reply = await next(messages, reply, { tools });
    }
    expect(called).toEqual(tools.map((t) => String((t.function as JsonObject).name)));
    expect(textOf(reply)).toContain('6 tool results');
    // Commands that run on a user’s machine do no harm.
    expect(JSON.stringify(messages)).toContain("echo 'hopgate demo'");
  });

  test('call ids are unique over the rounds', async () => {
    const tools = [weather, time];
    const messages: JsonObject[] = [{ role: 'user', content: '/demo tools' }];
    const first = await ask(messages, { tools });
    const second = await next(messages, first, { tools });
    const ids = [first, second].flatMap((reply) =>
      reply.choices[0].message.tool_calls!.map((call) => call.id),
    );
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^call_[0-9a-f]{24}$/);
  });

  test('max_tokens cuts arguments and says length', async () => {
    const reply = await ask('create a.txt with some longer words in it', {
      tools: [write],
      max_tokens: 30,
      tool_choice: 'required',
    });
    const whole = await ask('create a.txt with some longer words in it', {
      tools: [write],
      tool_choice: 'required',
    });
    const input = (r: Reply) => r.choices[0].message.tool_calls![0]!.function.arguments;
    const limited = await ask('create a.txt with some longer words in it', {
      tools: [write],
      max_tokens: 8,
      tool_choice: 'required',
    });
    expect(limited.choices[0].finish_reason).toBe('length');
    expect(input(whole).startsWith(input(limited))).toBe(true);
    expect(input(limited).length).toBeLessThan(input(whole).length);
    expect(input(reply).length).toBeGreaterThan(0);
  });
});
