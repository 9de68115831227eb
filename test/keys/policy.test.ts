/** What a key may use: models by asked name and by target, spaces, and several permissions at once. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Permissions } from '../../src/config/sections/keys/settings.ts';
import { policyOf } from '../../src/keys/make-principal.ts';
import { expectLinear } from '../support/growth.ts';

const target = (text: string) => {
  const at = text.indexOf('/');
  return { provider: text.slice(0, at), model: text.slice(at + 1) };
};

describe('models', () => {
  test.each([
    // A pattern about targets, however they were asked for.
    [['glm/*'], 'fast', 'glm/glm-5', true],
    [['glm/*'], 'fast', 'openai/gpt-6', false],
    [['glm/*'], 'glm/glm-5', 'glm/glm-5', true],
    [['glm/*'], 'GLM/x', 'openai/gpt-6', false],
    [['glm/*'], 'glm/x', 'openai/gpt-6', false],
    [['anthropic/*'], 'openrouter/anthropic/claude', 'openrouter/anthropic/claude', false],
    [['openrouter/anthropic/*'], 'x', 'openrouter/anthropic/claude', true],
    // A pattern about names: the routes decide what such a name is.
    [['claude-*'], 'claude-opus', 'glm/glm-5', true],
    [['claude-*'], 'gpt-6', 'glm/claude-x', false],
    [['claude-*'], 'Claude-opus', 'glm/glm-5', false],
    // A name that addresses a target counts as that target alone.
    [['claude-*'], 'claude-openai/gpt-6', 'openai/gpt-6', false],
    [['claude-*'], 'claude-relay/gpt-6', 'claude-relay/gpt-6', false],
    [['openai/gpt-6'], 'claude-openai/gpt-6', 'openai/gpt-6', true],
    [['*'], 'claude-openai/gpt-6', 'openai/gpt-6', true],
    [[], 'anything', 'glm/glm-5', false],
  ])('%j, asked as %s, at %s: %p', (models, asked, at, may) => {
    const policy = policyOf([{ models }]);
    expect(policy.allowsModel(asked) && policy.allowsTarget(asked, target(at))).toBe(may);
  });

  test('what is refused by name could reach no target (property)', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', '-'), maxLength: 6 });
    fc.assert(
      fc.property(fc.array(word, { maxLength: 3 }), word, word, word, (models, asked, p, m) => {
        const policy = policyOf([{ models: models.filter((one) => one !== '') }]);
        if (policy.allowsModel(asked)) return;
        expect(policy.allowsTarget(asked, { provider: p, model: m })).toBe(false);
      }),
      { numRuns: 3000 },
    );
  });

  test('more permissions never allow more (property)', () => {
    const glob = fc.string({
      unit: fc.constantFrom('a', 'b', '/', '*', '?'),
      minLength: 1,
      maxLength: 5,
    });
    const permissions = fc.record<Permissions>(
      {
        models: fc.array(glob),
        spaces: fc.array(glob),
        tools: fc.array(glob),
        routes: fc.array(glob),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(permissions, permissions, glob, glob, glob, (one, other, asked, p, m) => {
        const both = policyOf([one, other]);
        const single = policyOf([one]);
        const at = { provider: p, model: m };
        if (both.allowsTarget(asked, at)) expect(single.allowsTarget(asked, at)).toBe(true);
        if (both.allowsModel(asked)) expect(single.allowsModel(asked)).toBe(true);
        if (both.allowsSpace(asked)) expect(single.allowsSpace(asked)).toBe(true);
        if (both.allowsTool(asked)) expect(single.allowsTool(asked)).toBe(true);
        if (both.allowsRoute(asked)) expect(single.allowsRoute(asked)).toBe(true);
        if (both.everyTool) expect(both.allowsTool(asked)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('spaces', () => {
  test.each([
    ['alice', 'alice', true],
    ['alice', 'Alice', false],
    ['alice', 'alice2', false],
    ['family-*', 'family-', true],
    ['family-*', 'family-人', true],
    ['family-*', 'my-family-x', false],
    ['room-??', 'room-😀7', true],
    ['room-??', 'room-123', false],
  ])('%s, %s: %p', (glob, space, may) => {
    expect(policyOf([{ spaces: [glob] }]).allowsSpace(space)).toBe(may);
  });

  test('a pattern means what the same regular expression means (property)', () => {
    const words = fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.', '😀'), maxLength: 8 });
    fc.assert(
      fc.property(words, words, (glob, space) => {
        const source = [...glob]
          .map((one) => (one === '*' ? '.*' : one === '?' ? '.' : RegExp.escape(one)))
          .join('');
        const expected = new RegExp(`^${source}$`, 'su').test(space);
        expect(policyOf([{ spaces: [glob] }]).allowsSpace(space)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  test('work grows with the text, not faster', async () => {
    const policy = policyOf([{ spaces: ['*a*a*a*a*a*a*a*a*b'] }]);
    await expectLinear({
      name: 'stars',
      input: (size) => 'a'.repeat(size),
      run: (text) => policy.allowsSpace(text),
      most: 1 << 17,
    });
  });
});
