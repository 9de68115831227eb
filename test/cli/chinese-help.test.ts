/** The help in Chinese: nothing of it is left in English, nothing is translated that is not there, and its lines fit. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import texts from '../../src/cli/chinese-help.json' with { type: 'json' };
import { COMMAND_GROUPS, COMMON_OPTIONS, type NamedOption, named } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { CHINESE, inChinese } from '../../src/cli/help.ts';
import { widthOf, wrap } from '../../src/cli/terminal.ts';
import { createWorld, type World } from './world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const HAN = /\p{sc=Han}/u;
/** Words of people: a default such as `30d` or a list of names is the same in every language. */
const isProse = (text: string | undefined) =>
  text !== undefined && /[a-z]+ [a-z]+ [a-z]+/.test(text);
/** Names alone, as they are typed. */
const isNames = (text: string) => /^[\w.]+(、[\w.]+)*( 或 [\w.]+)?$/.test(text);

const optionsLeft = (chinese: readonly NamedOption[], english: readonly NamedOption[]) =>
  chinese.flatMap(({ name, summary, default: standard }, at) => [
    ...(HAN.test(summary) || isNames(summary) ? [] : [`--${name}: ${summary}`]),
    ...(isProse(english[at]!.default) && !HAN.test(standard!) ? [`--${name}: ${standard}`] : []),
  ]);

describe('every text of the help is there in Chinese', () => {
  const all: Readonly<Record<string, unknown>> = texts.commands;
  test('for each command, and for no other', () => {
    expect(Object.keys(all).sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
    expect(Object.keys(CHINESE.groups)).toEqual(Object.keys(COMMAND_GROUPS));
    expect(Object.keys(texts.common)).toEqual(Object.keys(COMMON_OPTIONS));
  });

  test.each(COMMANDS.map((command) => [command.name, command] as const))('%s', (_, command) => {
    const chinese = inChinese(command);
    const own = texts.commands[command.name as keyof typeof texts.commands] as {
      readonly arguments?: object;
      readonly options?: object;
    };
    const others = [
      chinese.summary,
      ...chinese.description,
      ...(chinese.arguments ?? []).map(({ summary }) => summary),
      ...Object.values(chinese.examples),
      ...Object.values(chinese.exits),
    ];
    expect(others.filter((text) => !HAN.test(text))).toEqual([]);
    expect(optionsLeft(named(chinese.options), named(command.options))).toEqual([]);
    expect(chinese.description).toHaveLength(command.description.length);
    // Nothing is translated that is not there.
    expect(Object.keys(own.options ?? {})).toEqual(Object.keys(command.options ?? {}));
    expect(Object.keys(own.arguments ?? {})).toEqual(
      (command.arguments ?? []).map(({ name }) => name),
    );
  });
});

test('the language of the environment decides, its strongest variable first', async () => {
  const first = async (variables: Readonly<Record<string, string>>) => {
    Object.assign(world.variables, { LANG: undefined, LC_ALL: undefined }, variables);
    return (await world.run(['--help'])).out.split('\n')[0];
  };
  const [chinese, english] = [CHINESE.title, 'one gateway between'];
  expect(await first({ LANG: 'zh_CN.UTF-8' })).toContain(chinese);
  expect(await first({ LANG: 'en_US.UTF-8', LC_ALL: 'zh_TW' })).toContain(chinese);
  expect(await first({ LANG: 'zh_CN.UTF-8', LC_ALL: 'C' })).toContain(english);
  expect(await first({ LANG: 'zh_CN.UTF-8', LC_ALL: '' })).toContain(chinese);
  expect(await first({})).toContain(english);
});

test('Chinese is wrapped between its characters, and no line begins with a closing mark', () => {
  const text =
    '从 stdin 读取请求体，每行一个，并为每个写出（网关会发送什么，改了什么）。不需要修复的请求体原样返回；不是请求的行变成错误。';
  for (let width = 12; width < 80; width++) {
    const lines = wrap(text, width);
    expect(lines.filter((line) => widthOf(line) > width + 2)).toEqual([]);
    expect(lines.filter((line) => /^[，。；：、！？）”]/.test(line))).toEqual([]);
    expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
  }
});
