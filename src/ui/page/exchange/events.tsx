/** The events of a stream: when each came, what it is called, what it says; the event itself opens on a click. */

import type { EventsView, EventView } from '../../api/api.ts';
import { RawText } from '../kit/code.tsx';
import { count, millis } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { Table } from '../kit/table.tsx';

export const Events = ({ events, total }: EventsView) => (
  <>
    <Table
      class="events"
      label={t`Events`}
      rows={events}
      columns={[
        ['#', (_, n) => n + 1, 'num'],
        [t`Time`, ({ at }) => millis(at), 'num'],
        [t`Event`, ({ name }) => name, 'nowrap'],
        [t`What it says`, (event) => <Said {...event} />, 'wide'],
      ]}
    />
    {events.length < total && (
      <p class="soft">
        {t`The first ${count(events.length)} of ${count(total)} events. JSON has all of them.`}
      </p>
    )}
  </>
);

const Said = ({ says, data }: EventView) => (
  <details>
    <summary>{(says || data).slice(0, 200)}</summary>
    <RawText text={data} />
  </details>
);
