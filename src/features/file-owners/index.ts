/** Refuses a request that names a file which another key uploaded through this gateway. */

import {
  checkFiles,
  type ForeignFiles,
  fileIdsIn,
  mayNameFiles,
} from '../../conversation/file-ids.ts';
import type { Feature } from '../feature.ts';

/** For one exchange. */
export function fileOwners(owner: string, foreign: ForeignFiles): Feature {
  let refusal: unknown;
  return {
    name: 'file-owners',
    mayApply: mayNameFiles,
    // The hops behind the first have the client's own request, and what tools have said.
    async prepare({ origin }, { hop }) {
      if (hop > 1) return;
      refusal = await checkFiles(fileIdsIn(origin?.value), owner, foreign).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
    },
    request(conversation) {
      if (refusal !== undefined) throw refusal;
      return conversation;
    },
  };
}
