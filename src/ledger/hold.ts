import { type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent } from "./event.ts";
import type { Progress } from "./outcome.ts";
import type { Slice } from "./slices.ts";
import type { OpenRequest } from "./writer.ts";

/**
 * Money reserved for a running request: held, then exactly once posted (charged) or voided (not charged). A class,
 * because closures would cost four more objects per request.
 */
export class HoldOf<Owner> implements OpenRequest {
	readonly admitted: AdmittedEvent;
	readonly account: Slice;
	readonly key: Slice;
	/** Slices of budgets besides the account's and the key's; usually there are none. */
	readonly further: readonly Slice[];
	/** Reserved amount. It grows only if the actual cost exceeds the bound and free credit covers that. */
	reserved: NanoUsd;
	/** Number of limit lowerings that the instance had applied at the reservation, see `Slices.lowerings`. */
	readonly lowering: number;
	/** Upper bound of the cost that may have been delivered, as recorded in the journal. */
	bound = ZERO_USD;
	state: "held" | "posted" | "voided" = "held";
	/** Number of the journal segment that contains the admission. It changes when the admission is copied forward. */
	segment: number;
	progress: Progress | undefined = undefined;
	readonly ledger: Owner;
	/** Resolves when Postgres has the reservation. Undefined unless the journal's mode is `remote`. */
	readonly known: Promise<void> | undefined;
	readonly acknowledge: (() => void) | undefined;
	readonly #giveUp: ((why: unknown) => void) | undefined;
	/** Index in the ledger's pool of running requests. */
	runningSlot = 0;
	slot = 0;

	/**
	 * `isAwaited`: the request waits until Postgres has the hold. Positional arguments save the allocation of an options
	 * object per request.
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

	/** Rejects the promise on which the request waits: Postgres will never get the hold. */
	giveUp(why: unknown): void {
		// Marks the promise as handled, because usually no request waits for it.
		this.known?.catch(() => {});
		this.#giveUp?.(why);
	}
}
