import { type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent } from "./event.ts";
import type { Progress } from "./outcome.ts";
import type { Slice } from "./slices.ts";
import type { OpenRequest } from "./writer.ts";

/**
 * Money reserved for a running request: held, then exactly once posted (charged) or voided (not charged). A class,
 * because an object with closures would cost four more objects per request.
 */
export class HoldOf<Owner> implements OpenRequest {
	readonly admitted: AdmittedEvent;
	readonly account: Slice;
	readonly key: Slice;
	/** Slices of the request's budgets other than account and key; usually none. */
	readonly further: readonly Slice[];
	/** Reserved amount. It grows at settlement if the cost exceeds the bound and free credit covers the excess. */
	reserved: NanoUsd;
	/** Value of `Slices.lowerings` at the reservation; shows whether a limit was lowered since. */
	readonly lowering: number;
	/** Most that the answer's delivered part may have cost, as the journal records it. */
	bound = ZERO_USD;
	state: "held" | "posted" | "voided" = "held";
	/** Number of the journal segment with the admit record; changes when the record is copied to a newer segment. */
	segment: number;
	progress: Progress | undefined = undefined;
	readonly ledger: Owner;
	/** Resolves when Postgres has recorded the hold. Undefined unless the journal's mode is `remote`. */
	readonly known: Promise<void> | undefined;
	readonly acknowledge: (() => void) | undefined;
	readonly #giveUp: ((why: unknown) => void) | undefined;
	/** Index in the ledger's pool of running requests. */
	runningSlot = 0;
	slot = 0;

	/**
	 * `isAwaited`: the request waits until Postgres has recorded the hold. Positional arguments avoid allocating an
	 * options object per request.
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

	/** Rejects the promise `known`, because Postgres will not record the hold. */
	giveUp(why: unknown): void {
		// Avoids an unhandled rejection, because usually no request waits for the promise.
		this.known?.catch(() => {});
		this.#giveUp?.(why);
	}
}
