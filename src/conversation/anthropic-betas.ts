/** Which fields of a Messages body belong to a beta: they go with the flag in `anthropic-beta`, and with it they are dropped. */

/** Each field with the flags (globs) of which one is needed. A star in a path stands for every item of a list. */
export const BETA_FIELDS: readonly (readonly [path: string, flags: readonly string[]])[] = [
  ['context_management', ['context-management-*', 'compact-*']],
  ['mcp_servers', ['mcp-client-*']],
  ['container', ['code-execution-*', 'skills-*']],
  ['speed', ['fast-mode-*']],
  ['output_format', ['structured-outputs-*']],
  ['output_config.format', ['structured-outputs-*']],
  ['output_config.effort', ['effort-*']],
  ['output_config.task_budget', ['task-budgets-*']],
  ['tools.*.strict', ['structured-outputs-*']],
  ['tools.*.defer_loading', ['tool-search-tool-*', 'advanced-tool-use-*']],
  ['tools.*.input_examples', ['tool-examples-*', 'advanced-tool-use-*']],
  ['tools.*.allowed_callers', ['advanced-tool-use-*']],
  ['tools.*.eager_input_streaming', ['fine-grained-tool-streaming-*']],
  ['tools.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['system.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['messages.*.content.*.cache_control.scope', ['prompt-caching-scope-*']],
  ['cache_control.scope', ['prompt-caching-scope-*']],
];
