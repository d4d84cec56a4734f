import { SettledColumns, type SettledEvent } from "./event.ts";

/** Queue of settlements for Postgres, divided into the batches in which they are sent. */
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
		add(event: SettledEvent, acknowledge: AcknowledgeSettlement, ticket: number, sinceMs: number) {
			last().add(event, acknowledge, ticket, sinceMs);
			length += 1;
		},
		/** Appends the batch unchanged, without moving its settlements into the last batch. */
		push(batch: SettledBatch) {
			batches.push(batch);
			length += batch.length;
		},
		/** Adds the batch's settlements at the end, filling the last batch first. */
		append(batch: SettledBatch) {
			for (let place = 0; place < batch.length; place++) batch.copy(place, last());
			length += batch.length;
		},
		length: () => length,
		ids: () => batches.flatMap(({ columns }) => columns.ids()),
		/** Monotonic time at which the oldest settlement was added; infinite if the queue is empty. */
		sinceMs: () => Math.min(...batches.map((batch) => batch.sinceMs)),
		/** Returns the first `count` settlements for sending. They stay in the queue until `remove` or `takeBack`. */
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
		/** Puts the lent settlements back at the front after a failed flush. */
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

/** Called with a settlement's ticket when Postgres has durably recorded the settlement. */
export type AcknowledgeSettlement = (ticket: number) => void;

export class SettledBatch {
	readonly columns = new SettledColumns();
	readonly #tickets: number[] = [];
	readonly #acknowledges: AcknowledgeSettlement[] = [];
	readonly #sincesMs: number[] = [];

	get length(): number {
		return this.#tickets.length;
	}

	/** Monotonic time at which the oldest settlement of the batch was added. */
	get sinceMs(): number {
		return this.#sincesMs.reduce((oldestMs, sinceMs) => Math.min(oldestMs, sinceMs), Number.POSITIVE_INFINITY);
	}

	add(event: SettledEvent, acknowledge: AcknowledgeSettlement, ticket: number, sinceMs: number): void {
		this.columns.add(event);
		this.#acknowledges.push(acknowledge);
		this.#tickets.push(ticket);
		this.#sincesMs.push(sinceMs);
	}

	/** Acknowledges all settlements except those at the indexes `leftOut`. */
	acknowledge(leftOut: ReadonlySet<number>): void {
		for (let place = 0; place < this.length; place++)
			if (!leftOut.has(place)) (this.#acknowledges[place] as AcknowledgeSettlement)(this.#tickets[place] as number);
	}

	where(chosen: (place: number) => boolean): SettledBatch {
		const batch = new SettledBatch();
		for (let place = 0; place < this.length; place++) if (chosen(place)) this.copy(place, batch);
		return batch;
	}

	copy(place: number, target: SettledBatch): void {
		target.add(
			this.columns.at(place),
			this.#acknowledges[place] as AcknowledgeSettlement,
			this.#tickets[place] as number,
			this.#sincesMs[place] as number,
		);
	}
}
