/** Budgets: how much of each is spent, as a table and as a line beside a key. */

import type { BudgetsReport, OwnedBudgetReport } from '../../../admin/api.ts';
import { percent, usd } from '../kit/format.ts';
import { listed, rich, t } from '../kit/language.ts';
import { adminRoute, hashOf } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Facts, Soft, When } from '../kit/ui.tsx';

const usedShare = ({ usd: amount, spent_usd, reserved_usd }: OwnedBudgetReport): number =>
  amount === 0 ? 1 : (spent_usd + reserved_usd) / amount;

/** `ok`, `warn` past its first mark, `bad` when it is spent. */
function toneOf(budget: OwnedBudgetReport): 'ok' | 'warn' | 'bad' {
  if (usedShare(budget) >= 1) return 'bad';
  return budget.never_fits_usd !== null || isMarked(budget) ? 'warn' : 'ok';
}

const isMarked = (budget: OwnedBudgetReport): boolean =>
  budget.warn.some((mark) => usedShare(budget) >= mark);

const PER: Readonly<Record<string, (amount: string) => string>> = {
  minute: (amount) => t`${amount} a minute`,
  hour: (amount) => t`${amount} an hour`,
  day: (amount) => t`${amount} a day`,
  week: (amount) => t`${amount} a week`,
  month: (amount) => t`${amount} a month`,
  total: (amount) => t`${amount} in all`,
};

export const periodText = ({ usd: amount, per }: { usd: number; per: string }): string =>
  PER[per]?.(usd(amount)) ?? usd(amount);

const width = (share: number) => `${(Math.min(1, share) * 100).toFixed(2)}%`;

const Part = ({ of, share = 1 }: { of: 'whole' | 'reserved' | 'spent'; share?: number }) => (
  <rect class={of} width={width(share)} height={8} y={3} rx={4} />
);

/** A part of a whole that is said in words beside it. */
export const ShareBar = ({ share }: { share: number }) => (
  <svg class="budget-bar" aria-hidden="true">
    <Part of="whole" />
    <Part of="spent" share={share} />
  </svg>
);

/** What is spent and reserved of a budget, with a mark at each warning. */
function Bar({ budget }: { budget: OwnedBudgetReport }) {
  const { usd: amount, spent_usd, warn } = budget;
  const marks = listed(warn.map((mark) => percent(mark))) || t`no share`;
  return (
    <svg
      class="budget-bar"
      data-tone={toneOf(budget)}
      role="img"
      aria-label={t`${percent(usedShare(budget))} used, warnings at ${marks}`}
    >
      <Part of="whole" />
      <Part of="reserved" share={usedShare(budget)} />
      <Part of="spent" share={amount === 0 ? 1 : spent_usd / amount} />
      {warn
        .filter((mark) => mark > 0 && mark < 1)
        .map((mark) => (
          <line key={mark} class="mark-line" x1={`${mark * 100}%`} x2={`${mark * 100}%`} y2={14} />
        ))}
    </svg>
  );
}

/** Such a budget shows nothing as spent, and refuses all the same. */
const NeverFits = ({ never_fits_usd }: OwnedBudgetReport) =>
  never_fits_usd === null ? null : (
    <small class="problem">
      {t`refuses requests of ${usd(never_fits_usd)}: more than all of it`}
    </small>
  );

/** In a narrow place: amounts above the bar. */
export const BudgetLine = ({ budget }: { budget: OwnedBudgetReport }) => (
  <div class="budget-line">
    <div class="split">
      <b>{usd(budget.spent_usd)}</b>
      <Soft>{rich`of ${periodText(budget)}`}</Soft>
    </div>
    <Bar budget={budget} />
    <NeverFits {...budget} />
    {budget.resets_at !== null && <small>{rich`resets ${<When iso={budget.resets_at} />}`}</small>}
  </div>
);

const OVER: Readonly<Record<string, string>> = { refuse: t`refuse`, warn: t`warn only` };

/** All budgets, the fullest first. */
export function BudgetList({ data, has_more }: BudgetsReport) {
  const spent = data.filter((budget) => usedShare(budget) >= 1).length;
  const warned = data.filter(isMarked).length - spent;
  const tooSmall = data.filter((budget) => budget.never_fits_usd !== null).length;
  return (
    <>
      <Facts
        class="figures"
        items={[
          [t`Budgets`, data.length],
          [t`Above a warning mark`, warned, { 'data-tone': warned > 0 ? 'warn' : undefined }],
          [t`Used up`, spent, { 'data-tone': spent > 0 ? 'bad' : undefined }],
          tooSmall > 0 && [t`Too small for a request`, tooSmall, { 'data-tone': 'warn' }],
        ]}
      />
      <Table
        cards
        label={t`Budgets`}
        rows={data}
        rowProps={(budget) => ({ 'data-tone': toneOf(budget) })}
        columns={[
          [t`Budget`, nameOf, 'wraps'],
          [t`For`, (budget) => <Owner {...budget} />, 'wraps'],
          [t`Used`, (budget) => <Used {...budget} />, 'used'],
          [t`Spent`, ({ spent_usd }) => usd(spent_usd), 'num'],
          [t`Reserved`, ({ reserved_usd: held }) => (held === 0 ? '–' : usd(held)), 'num'],
          [t`Limit`, periodText, 'num'],
          [
            t`Resets`,
            ({ resets_at: at }) => (at === null ? <Soft>{t`never`}</Soft> : <When iso={at} />),
          ],
          [t`When spent`, ({ over }) => OVER[over] ?? t`route ${over}`],
        ]}
      />
      {has_more && (
        <p class="soft admin-more">{t`There are more budgets, with less of them used.`}</p>
      )}
    </>
  );
}

/** A key's budget has its key's name in front, and its period as a name where it has none. */
function nameOf(budget: OwnedBudgetReport): string {
  const { name, key_name, per } = budget;
  const own = key_name === null ? name : name.replace(`${key_name}: `, '');
  return own === `per ${per}` ? periodText(budget) : own;
}

function Owner({ key: id, key_name, labels }: OwnedBudgetReport) {
  if (id !== null) {
    return <>{rich`key ${<a href={hashOf(adminRoute('keys', id))}>{key_name ?? id}</a>}`}</>;
  }
  const pairs = Object.entries(labels ?? {});
  if (pairs.length === 0) return <>{t`all requests`}</>;
  return <>{rich`keys with ${<Labels all={labels ?? {}} />}`}</>;
}

export const Labels = ({ all }: { all: Readonly<Record<string, string>> }) =>
  Object.entries(all).map(([name, value]) => (
    <span key={name} class="label">{`${name}: ${value}`}</span>
  ));

const Used = (budget: OwnedBudgetReport) => (
  <>
    <div class="used-bar">
      <Bar budget={budget} />
      <span class="num">{percent(usedShare(budget))}</span>
    </div>
    <NeverFits {...budget} />
  </>
);
