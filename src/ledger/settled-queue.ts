import type { SettledEvent } from "./event.ts";
import { type Acknowledge, SettledBatch } from "./settled-batch.ts";

/** Queue of settlements for Postgres, in the batches in which they are sent. */
export function createSettledQueue(batchMax: number) {
	const batches: SettledBatch[] = [];
	let length = 0;
	let lent: SettledBatch | undefined;

	function last(): SettledBatch {
		const present = batches.at(-1);
		if (present && present !== lent && present.length < batchMax) return present;
		const next = new SettledBatch();
		batches.push(next);
		return next;
	}

	return {
		add(event: SettledEvent, acknowledge: Acknowledge, ticket: number, sinceMs: number) {
			last().add(event, acknowledge, ticket, sinceMs);
			length += 1;
		},
		/** Appends the batch as a whole, without filling the last one. */
		push(batch: SettledBatch) {
			batches.push(batch);
			length += batch.length;
		},
		/** Adds the settlements to the end, filling the last batch. */
		append(batch: SettledBatch) {
			for (let place = 0; place < batch.length; place++) batch.copy(place, last());
			length += batch.length;
		},
		length: () => length,
		ids: () => batches.flatMap(({ columns }) => columns.ids()),
		/** When the oldest was added; infinite if there is none. */
		sinceMs: () => Math.min(...batches.map((batch) => batch.sinceMs)),
		/** Returns the first `count` settlements for sending. They stay unchanged until `takeBack` or `remove`. */
		lend(count: number) {
			const [first] = batches;
			if (first === undefined || first.length <= count) lent = first;
			else {
				lent = first.where((place) => place < count);
				const rest = first.where((place) => place >= count);
				batches.splice(0, 1, lent, rest);
			}
			return lent;
		},
		/** Makes the lent settlements the first batch again. */
		takeBack() {
			lent = undefined;
		},
		remove() {
			if (lent === undefined) return;
			batches.shift();
			length -= lent.length;
			lent = undefined;
		},
		hasMore: () => batches.length > 1,
		rotate() {
			const first = batches.shift();
			if (first) batches.push(first);
		},
	};
}
