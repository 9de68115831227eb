/** A replica in a process of its own that kills itself at a step of its first upload; says the id of its sample before. */

import { Replica } from './replica.ts';

const { url, endpoint, prefix, root, step } = JSON.parse(process.argv[2]!);
const replica = new Replica(
  {
    database: { url } as never,
    objects: { endpoint, bucket: 'samples' } as never,
    prefix,
  },
  {
    root,
    onStep(at) {
      if (at === step) process.kill(process.pid, 'SIGKILL');
    },
  },
);
const { id, end } = replica.begin('words of the dead');
process.stdout.write(id);
end();
await Bun.sleep(60_000);
