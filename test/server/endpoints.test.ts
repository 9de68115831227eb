/** Paths and their protocols: the error of a wrong one, and mistakes that are corrected. */

import { describe, expect, test } from 'bun:test';
import { apiOf, methodsAt, nearestEndpoint } from '../../src/server/endpoints.ts';
import { localUrl, mendedPath, pathOf, targetOf } from '../../src/server/request-path.ts';
import { ALL_ROUTES } from './all-routes.ts';

describe('the path of a request', () => {
  test.each([
    ['http://127.0.0.1:1/v1/models?limit=1', '/v1/models', '/v1/models?limit=1'],
    ['/v1/models?x=/y', '/v1/models', '/v1/models?x=/y'],
    ['http://[::1/q', '/q', '/q'],
    ['http://a b/q', '/q', '/q'],
    ['http://x//v1/models', '//v1/models', '//v1/models'],
    ['http://x', '/', '/'],
  ])('of %s is read without its host', (url, path, target) => {
    expect([pathOf(url), targetOf(url)]).toEqual([path, target]);
    expect(localUrl(url).host).toBe('localhost');
  });

  test.each([
    ['//v1/messages', '/v1/messages'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/v1//models', '/v1/models'],
    ['/v1/models', undefined],
    ['/openai/v1/responses', '/v1/responses'],
    ['/openai/v1/responses/resp_1/cancel', '/v1/responses/resp_1/cancel'],
    ['/openai/responses', '/v1/responses'],
    ['/openai/models', '/v1/models'],
    ['/v1/openai/v1//chat/completions', '/v1/chat/completions'],
    ['/ui/openai/x', undefined],
  ])('%s means %s', (path, meant) => {
    expect(mendedPath(path)).toEqual(meant === undefined ? undefined : { path: meant });
  });

  test.each([
    ['/openai/deployments/gpt-4o/chat/completions', '/v1/chat/completions', 'gpt-4o'],
    ['/openai/deployments/glm%2Fglm-4.7/embeddings', '/v1/embeddings', 'glm/glm-4.7'],
    ['/openai/deployments/%E6%A8%A1/audio/speech', '/v1/audio/speech', '模'],
    ['/openai/deployments/100%/completions', '/v1/completions', '100%'],
  ])('%s names the model', (path, meant, deployment) => {
    expect(mendedPath(path)).toEqual({ path: meant, deployment });
  });
});

test.each([
  ['/v1/chat/completions', ['POST']],
  ['/v1/chat/completions/', ['POST']],
  ['/v1/responses/resp_1', ['GET', 'DELETE']],
  ['/v1/responses/compact', ['POST']],
  ['/v1/conversations', undefined],
  ['/v1/models', ['GET']],
  // A model's methods stand behind its name.
  ['/v1/models/org/name', ['GET', 'POST']],
  ['/v1beta/models/org/name:generateContent', ['GET', 'POST']],
  ['/v1/memory/space/events', ['GET', 'POST']],
  ['/v1/memory', ['GET']],
  ['/v1/responses/input_tokens', ['POST']],
  ['/v1/memory/space/events/id', ['GET', 'PATCH', 'DELETE']],
  ['/v1/embeddings', ['POST']],
  ['/images/edits', ['POST']],
  ['/v1/videos', undefined],
  [`/${'x/'.repeat(50_000)}`, undefined],
])('the methods of a path', (path, methods) => {
  expect(methodsAt(ALL_ROUTES, path)).toEqual(methods);
});

test.each([
  ['/v1/embeddings', 'openai'],
  ['/v1/responses/x', 'openai'],
  ['/embeddings', 'openai'],
  ['/v1/messages/batches', 'anthropic'],
  ['/messages', 'anthropic'],
  ['/v1/models', undefined],
  ['/v1/embeddingsx', undefined],
])('whose API %s is part of', (path, api) => {
  expect(apiOf(path)).toBe(api as 'openai');
});

test.each([
  ['POST', '/v1/message', 'POST /v1/messages'],
  ['POST', '/v1/chat/completion', 'POST /v1/chat/completions'],
  ['POST', '/v1/CHAT/completions', 'POST /v1/chat/completions'],
  ['POST', '/anthropic/v1/messages', 'POST /v1/messages'],
  ['POST', '/openai/v1/chat/completions', 'POST /v1/chat/completions'],
  ['POST', '/v1/messages/count_token', 'POST /v1/messages/count_tokens'],
  [
    'POST',
    '/v1/v1beta/models/org/name:generateContent',
    'POST /v1beta/models/MODEL:generateContent',
  ],
  ['GET', '/v1/model', 'GET /v1/models'],
  ['GET', '/health/target', 'GET /health/targets'],
  ['POST', '/api/chat', undefined],
  ['POST', '/v1/', undefined],
  ['GET', '/', undefined],
  ['POST', '/wp-login.php', undefined],
  ['DELETE', '/v1/message', undefined],
  ['POST', `/${'x/'.repeat(50_000)}`, undefined],
])('%s %s was meant as %s', (method, path, meant) => {
  expect(nearestEndpoint(method, path)).toBe(meant);
});
