/** The empty list: how to switch on recording, and how to send a first request. */

import type { Info } from '../../api/api.ts';
import { Snippet } from '../kit/copy.tsx';
import { rich, t } from '../kit/language.ts';
import { Blank, DocLink } from '../kit/ui.tsx';

export const RecordingOff = () => (
  <Blank title={t`Recording is off`}>
    <p>{t`Exchanges appear here once the gateway records them. Put this into its configuration:`}</p>
    <Snippet text={'samples:\n  mode: all        # or: errors'} />
    <p>
      {rich`A running gateway applies this by itself; reload this page afterwards. Samples stay on the gateway’s machine, and credentials are never written. 
      ${<DocLink to="configuration#samples">{t`All settings`}</DocLink>}`}
    </p>
  </Blank>
);

/** Nothing was recorded so far. */
export function FirstRequest({ info }: { info: Info }) {
  const first = info.targets.find(({ models }) => models.length > 0)?.models[0];
  const body = JSON.stringify({
    model: first ?? 'demo/echo',
    stream: true,
    messages: [{ role: 'user', content: 'Hello!' }],
  });
  const key = info.auth ? ' \\\n  -H "authorization: Bearer $HOPGATE_KEY"' : '';
  const line = `curl -N ${location.origin}/v1/chat/completions \\\n  -H 'content-type: application/json'${key} \\\n  -d '${body}'`;
  if (info.samples.mode === 'errors' && info.samples.recent === null) {
    return (
      <Blank title={t`No failures so far`}>
        <p>{t`Only exchanges that fail are recorded (samples.mode: errors). They appear here at once.`}</p>
        <p>{t`To see successful exchanges as well, put this into the configuration. They stay on the gateway’s machine, and credentials are never written:`}</p>
        <Snippet text={'samples:\n  mode: all'} />
        <p>{t`Then send a request:`}</p>
        <Snippet text={line} />
      </Blank>
    );
  }
  return (
    <Blank title={t`Waiting for the first exchange`}>
      <p>{t`Send one, and it appears here at once:`}</p>
      <Snippet text={line} />
    </Blank>
  );
}
