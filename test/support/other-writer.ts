/** Another process that writes to a database for a while. */

/** Holds the write lock of a SQLite file for so many milliseconds, from now on. Resolves with the end of that process. */
export async function writesElsewhere(
  path: string,
  ms: number,
): Promise<{ over: Promise<number> }> {
  const script = `const { Database } = require('bun:sqlite');
    const db = new Database(${JSON.stringify(path)});
    db.run('BEGIN IMMEDIATE');
    console.log('writes');
    setTimeout(() => db.run('COMMIT'), ${ms});`;
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' });
  await child.stdout.getReader().read();
  return { over: child.exited };
}
