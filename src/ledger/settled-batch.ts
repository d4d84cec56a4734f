import type { SettledEvent } from "./event.ts";
import { SettledColumns } from "./settled-columns.ts";

/** Called when Postgres has durably recorded the settlement with this ticket. */
export type Acknowledge = (ticket: number) => void;

export class SettledBatch {
	readonly columns = new SettledColumns();
	readonly #tickets: number[] = [];
	readonly #acknowledges: Acknowledge[] = [];
	readonly #sincesMs: number[] = [];

	get length(): number {
		return this.#tickets.length;
	}

	/** Monotonic time at which the oldest settlement of the batch was added. */
	get sinceMs(): number {
		return this.#sincesMs.reduce((oldestMs, sinceMs) => Math.min(oldestMs, sinceMs), Number.POSITIVE_INFINITY);
	}

	add(event: SettledEvent, acknowledge: Acknowledge, ticket: number, sinceMs: number): void {
		this.columns.add(event);
		this.#acknowledges.push(acknowledge);
		this.#tickets.push(ticket);
		this.#sincesMs.push(sinceMs);
	}

	/** Acknowledges all settlements except those at the indexes `leftOut`. */
	acknowledge(leftOut: ReadonlySet<number>): void {
		for (let place = 0; place < this.length; place++)
			if (!leftOut.has(place)) (this.#acknowledges[place] as Acknowledge)(this.#tickets[place] as number);
	}

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
}
