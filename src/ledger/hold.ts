import type { NanoUsd } from "../money/nano-usd.ts";
import { ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent } from "./event.ts";
import type { Progress } from "./outcome.ts";
import type { Slice } from "./slices.ts";
import type { OpenRequest } from "./writer.ts";

/**
 * Money reserved for one running request: held → posted (charged) or voided (nothing charged), exactly once. A class, since
 * there is one for each request: closures would be four objects more.
 */
export class HoldOf<Owner> implements OpenRequest {
	readonly admitted: AdmittedEvent;
	readonly account: Slice;
	readonly key: Slice;
	/** Of the budgets beside them: mostly none. */
	readonly further: readonly Slice[];
	/** Grows only if the actual cost passes the bound and free credit covers it. */
	reserved: NanoUsd;
	/** As of `Slices.lowerings`, when it was made. */
	readonly lowering: number;
	/** What the journal says may have been delivered. */
	bound = ZERO_USD;
	state: "held" | "posted" | "voided" = "held";
	/** The journal's segment that holds its admission; a later one when that was carried forward. */
	segment: number;
	/** The newest record of how far it has got. */
	progress: Progress | undefined = undefined;
	readonly ledger: Owner;
	/** In mode `remote`: resolves when Postgres knows of the reservation. */
	readonly known: Promise<void> | undefined;
	readonly acknowledge: (() => void) | undefined;
	readonly #giveUp: ((why: unknown) => void) | undefined;
	/** Among the ledger's running ones. */
	runningSlot = 0;
	slot = 0;

	/** `isAwaited`: the request waits until Postgres knows of the hold. Positional: an object of them is one allocation more. */
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

	/** Postgres will not hear of it: who waits for that hears why. */
	giveUp(why: unknown): void {
		// Mostly nobody does.
		this.known?.catch(() => {});
		this.#giveUp?.(why);
	}
}
