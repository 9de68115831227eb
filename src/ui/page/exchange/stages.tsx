/** The stages of an exchange: their labels, their order, and lists and menus of their bodies. */

import type { SampleMeta, SampleStage } from '../../../samples/sample.ts';
import type { Info, SampleDetail } from '../../api/api.ts';
import { bytes } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { ExchangeRoute } from '../kit/route.ts';

/** What every view of an exchange is drawn from. */
export interface ViewProps {
  readonly detail: SampleDetail;
  readonly info: Info;
  readonly route: ExchangeRoute;
}

const KINDS: Readonly<Record<string, string>> = {
  'client-request': t`Request`,
  'client-response': t`Response`,
  'provider-request': t`Request`,
  'provider-response': t`Response`,
  'provider-error': t`Error`,
};

/** The label of a stage: its group (`Client`, `Hop 2`) and its name there. */
export function stageLabel(stage: string): { readonly group: string; readonly name: string } {
  const match = /^(?:hop(\d+)-)?(?:try(\d+)-)?(.+)$/.exec(stage);
  const kind = match?.[3] ?? stage;
  const name = KINDS[kind] ?? kind;
  if (kind.startsWith('client-')) return { group: t`Client`, name };
  const hop = t`Hop ${match?.[1] ?? 1}`;
  return { group: match?.[2] === undefined ? hop : t`${hop}, attempt ${match[2]}`, name };
}

/** `Client request`, `Hop 2 response`. */
export function stageTitle(stage: string): string {
  const { group, name } = stageLabel(stage);
  return t`${group} ${name.toLowerCase()}`;
}

/** For a menu of bodies. */
export const stageChoices = (stages: readonly string[]) =>
  stages.map((stage) => [stage, stageTitle(stage)] as const);

/** A body is a stream of events. */
export const isStream = (stageInfo: SampleStage): boolean => stageInfo.file.endsWith('.sse');

export const stageInfoOf = ({ edges }: SampleMeta, stage: string | undefined) =>
  edges.find((one) => one.stage === stage);

/** Stages in the order of events: the client's request first, its response last. */
export function inOrder(meta: SampleMeta): readonly SampleStage[] {
  const rank = ({ stage }: SampleStage) =>
    stage === 'client-request' ? 0 : stage === 'client-response' ? 2 : 1;
  return [...meta.edges].sort((a, b) => rank(a) - rank(b));
}

interface StageListProps {
  readonly detail: SampleDetail;
  readonly current: string;
  readonly href: (stage: string) => string;
}

export function StageList({ detail: { meta }, current, href }: StageListProps) {
  const groups = Map.groupBy(inOrder(meta), ({ stage }) =>
    stage === 'client-response' ? 'client' : stageLabel(stage).group,
  );
  return (
    <nav class="stages" aria-label={t`Bodies`}>
      {[...groups].map(([group, members]) => (
        <div class="stage-group" key={group}>
          <h2>{group === 'client' ? t`Client` : group}</h2>
          {members.map(({ stage, status, error, bytes: size }) => (
            <a
              key={stage}
              href={href(stage)}
              aria-current={stage === current ? 'true' : undefined}
              data-tone={error !== undefined || (status ?? 0) >= 400 ? 'bad' : 'ok'}
            >
              <span>{stageLabel(stage).name}</span>
              <small>{`${status === undefined ? '' : `${status} · `}${bytes(size)}`}</small>
            </a>
          ))}
        </div>
      ))}
    </nav>
  );
}
