import type { SettledEvent } from "./event.ts";
import { SettledColumns } from "./settled-columns.ts";

/** Postgres has the settlement with this ticket, now and for good. */
export type Acknowledge = (ticket: number) => void;

/** Settlements that go to Postgres together, and who is told when they are there. */
export class SettledBatch {
	readonly columns = new SettledColumns();
	readonly #tickets: number[] = [];
	readonly #acknowledges: Acknowledge[] = [];
	readonly #sincesMs: number[] = [];

	get length(): number {
		return this.#tickets.length;
	}

	/** When the oldest of them came. */
	get sinceMs(): number {
		return this.#sincesMs.reduce((oldestMs, sinceMs) => Math.min(oldestMs, sinceMs), Number.POSITIVE_INFINITY);
	}

	add(event: SettledEvent, acknowledge: Acknowledge, ticket: number, sinceMs: number): void {
		this.columns.add(event);
		this.#acknowledges.push(acknowledge);
		this.#tickets.push(ticket);
		this.#sincesMs.push(sinceMs);
	}

	/** All that are not left out. */
	acknowledge(leftOut: ReadonlySet<number>): void {
		for (let place = 0; place < this.length; place++)
			if (!leftOut.has(place)) (this.#acknowledges[place] as Acknowledge)(this.#tickets[place] as number);
	}

	/** Those at the places that `chosen` says, in their order. */
	where(chosen: (place: number) => boolean): SettledBatch {
		const batch = new SettledBatch();
		for (let place = 0; place < this.length; place++) if (chosen(place)) this.copy(place, batch);
		return batch;
	}

	copy(place: number, target: SettledBatch): void {
		target.add(
			this.columns.at(place),
			this.#acknowledges[place] as Acknowledge,
			this.#tickets[place] as number,
			this.#sincesMs[place] as number,
		);
	}

	/** For others: what was made for one batch is there for the next. */
	clear(): void {
		this.columns.clear();
		this.#tickets.length = 0;
		this.#acknowledges.length = 0;
		this.#sincesMs.length = 0;
	}
}
