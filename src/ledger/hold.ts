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
	/** Slices of further budgets; usually there are none. */
	readonly further: readonly Slice[];
	/** Reserved amount. It grows only if the actual cost exceeds the bound and free credit covers it. */
	reserved: NanoUsd;
	/** `Slices.lowerings` at the time of the reservation. */
	readonly lowering: number;
	/** Upper bound of the cost that may have been delivered, as recorded in the journal. */
	bound = ZERO_USD;
	state: "held" | "posted" | "voided" = "held";
	/** Journal segment with the admission; a later one after the admission was copied forward. */
	segment: number;
	/** Newest progress record. */
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
	 * `isAwaited`: the request waits until Postgres has the hold. Positional arguments, because an options object is one
	 * more allocation per request.
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
		// Prevents an unhandled rejection, because usually no request waits.
		this.known?.catch(() => {});
		this.#giveUp?.(why);
	}
}
