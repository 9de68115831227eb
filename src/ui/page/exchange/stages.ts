/** The stages of an exchange: their labels, their order, and lists and menus of their bodies. */

import type { SampleMeta, SampleStage } from '../../../samples/sample.ts';
import type { SampleDetail } from '../../api/api.ts';
import { h } from '../kit/dom.ts';
import { bytes } from '../kit/format.ts';

const KINDS: Readonly<Record<string, string>> = {
  'client-request': 'Client request',
  'client-response': 'Client response',
  'provider-request': 'Request',
  'provider-response': 'Response',
  'provider-error': 'Error',
};

/** The label of a stage: its group (`Client`, `Hop 2`) and its name there. */
export function stageLabel(stage: string): { readonly group: string; readonly name: string } {
  const match = /^(?:hop(\d+)-)?(?:try(\d+)-)?(.+)$/.exec(stage);
  const kind = match?.[3] ?? stage;
  const name = KINDS[kind] ?? kind;
  if (kind.startsWith('client-')) return { group: 'Client', name: name.replace('Client r', 'R') };
  const attempt = match?.[2] === undefined ? '' : `, try ${match[2]}`;
  return { group: `Hop ${match?.[1] ?? 1}${attempt}`, name };
}

/** `Client request`, `Hop 2 response`. */
export function stageTitle(stage: string): string {
  const { group, name } = stageLabel(stage);
  return `${group} ${name.toLowerCase()}`;
}

/** A body is a stream of events. */
export const isStream = (stageInfo: SampleStage): boolean => stageInfo.file.endsWith('.sse');

export const stageInfoOf = (meta: SampleMeta, stage: string): SampleStage | undefined =>
  meta.edges.find((stageInfo) => stageInfo.stage === stage);

/** Stages in the order of events: the client's request first, its response last. */
export function inOrder(meta: SampleMeta): readonly SampleStage[] {
  const rank = ({ stage }: SampleStage) =>
    stage === 'client-request' ? 0 : stage === 'client-response' ? 2 : 1;
  return [...meta.edges].sort((a, b) => rank(a) - rank(b));
}

/** Links to the bodies, grouped by hop. */
export function stageList(
  { meta }: SampleDetail,
  current: string,
  href: (stage: string) => string,
): HTMLElement {
  const groups = Map.groupBy(inOrder(meta), ({ stage }) =>
    stage === 'client-response' ? 'Client ' : stageLabel(stage).group,
  );
  return h(
    'nav',
    { class: 'stages', 'aria-label': 'Bodies' },
    [...groups].map(([group, members]) =>
      h(
        'div',
        { class: 'stage-group' },
        h('h2', null, group.trim()),
        members.map((stageInfo) =>
          h(
            'a',
            {
              href: href(stageInfo.stage),
              'aria-current': stageInfo.stage === current ? 'true' : null,
              'data-tone':
                stageInfo.error !== undefined || (stageInfo.status ?? 0) >= 400 ? 'bad' : 'ok',
            },
            h('span', null, stageLabel(stageInfo.stage).name),
            h(
              'small',
              null,
              stageInfo.status === undefined ? '' : `${stageInfo.status} · `,
              bytes(stageInfo.bytes),
            ),
          ),
        ),
      ),
    ),
  );
}

/** A menu of bodies. */
export function stageSelect(
  label: string,
  stages: readonly string[],
  current: string,
  choose: (stage: string) => void,
): HTMLSelectElement {
  const select = h(
    'select',
    { 'aria-label': label, on: { change: () => choose(select.value) } },
    stages.map((stage) =>
      h('option', { value: stage, selected: stage === current }, stageTitle(stage)),
    ),
  );
  select.value = current;
  return select;
}
