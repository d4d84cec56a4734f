import { type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent } from "./event.ts";
import type { Progress } from "./outcome.ts";
import type { Slice } from "./slices.ts";
import type { OpenRequest } from "./writer.ts";

/**
 * Money reserved for one running request: held → posted (charged) or voided (nothing charged), exactly once. A class
 * because each request has one: closures would be four more objects.
 */
export class HoldOf<Owner> implements OpenRequest {
	readonly admitted: AdmittedEvent;
	readonly account: Slice;
	readonly key: Slice;
	/** Slices of further budgets; usually none. */
	readonly further: readonly Slice[];
	/** Grows only if the actual cost exceeds the bound and free credit covers it. */
	reserved: NanoUsd;
	/** `Slices.lowerings` at the time of the reservation. */
	readonly lowering: number;
	/** Upper bound of the cost that may have been delivered, by the journal. */
	bound = ZERO_USD;
	state: "held" | "posted" | "voided" = "held";
	/** The journal segment with its admission; a later one after the admission was carried forward. */
	segment: number;
	/** The newest progress record. */
	progress: Progress | undefined = undefined;
	readonly ledger: Owner;
	/** In mode `remote`: resolves when Postgres has the reservation. */
	readonly known: Promise<void> | undefined;
	readonly acknowledge: (() => void) | undefined;
	readonly #giveUp: ((why: unknown) => void) | undefined;
	/** Index in the ledger's pool of running requests. */
	runningSlot = 0;
	slot = 0;

	/**
	 * `isAwaited`: the request waits until Postgres has the hold. Positional arguments: an options object is one more
	 * allocation per request.
	 */
	constructor(
		ledger: Owner,
		admitted: AdmittedEvent,
		account: Slice,
		key: Slice,
		further: readonly Slice[],
		lowering: number,
		segment: number,
		isAwaited: boolean,
	) {
		this.admitted = admitted;
		this.account = account;
		this.key = key;
		this.further = further;
		this.reserved = admitted.reserved;
		this.lowering = lowering;
		this.segment = segment;
		this.ledger = ledger;
		const known = isAwaited ? Promise.withResolvers<void>() : undefined;
		this.known = known?.promise;
		this.acknowledge = known?.resolve;
		this.#giveUp = known?.reject;
	}

	json(): string {
		return JSON.stringify({ ...this.admitted, reserved: this.reserved });
	}

	isOpen(): boolean {
		return this.state === "held";
	}

	/** Postgres will never receive the hold: rejects the promise that the request waits for. */
	giveUp(why: unknown): void {
		// Usually no request waits for it.
		this.known?.catch(() => {});
		this.#giveUp?.(why);
	}
}
