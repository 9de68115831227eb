/** Variables that Bun, its engine and its allocator read when a process begins, and never again (decision 14). */

const VARIABLES = {
  // Requests by `fetch` at a time, where a provider needs one: behind a proxy, or with HTTP/2. Bun's own limit is 256.
  BUN_CONFIG_MAX_HTTP_REQUESTS: '65535',
  // Milliseconds until freed memory goes back to the system: whole pages, and what is free inside of others. What goes
  // back at once is asked for again at once.
  MIMALLOC_PURGE_DELAY: '5000',
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '30000',
  // Compiled code is thrown away when nothing has run it for some five minutes, in place of one: what runs now and then
  // would be compiled again and again.
  BUN_JSC_codeBlockAgingLeaseMultiplier: '20',
};

/**
 * Replaces this process by the same program with these variables, where it lacks one: the pid stays, some 4 ms are lost.
 * What the user has set stays. Without execve (Windows), or where a sandbox refuses it, a server is slower and not broken.
 * @param command the program with its arguments
 */
export function beginWithVariables(
  command: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): void {
  if (Object.keys(VARIABLES).every((name) => variables[name] !== undefined)) return;
  try {
    process.execve?.(process.execPath, [...command], {
      ...VARIABLES,
      ...variables,
    } as NodeJS.ProcessEnv);
  } catch {
    // A sandbox without exec.
  }
}
