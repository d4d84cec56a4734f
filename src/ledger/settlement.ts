import type { NanoUsd } from "../money/nano-usd.ts";
import type { SettledEvent } from "./event.ts";
import type { HoldOf } from "./hold.ts";
import type { Slice } from "./slice.ts";
import type { QueuedSettlement } from "./writer.ts";

/** How a hold ended, on its way to Postgres. The hold itself is let go: what waits here survives young collections. */
export class Settlement implements QueuedSettlement {
	readonly event: SettledEvent;
	readonly json: string;
	readonly accountSlice: Slice;
	readonly keySlice: Slice;
	readonly furtherSlices: readonly Slice[];
	/** What its hold kept back, and the segment of the journal that has its admission. */
	readonly reserved: NanoUsd;
	readonly lowering: number;
	readonly segment: number;
	readonly charged: NanoUsd;
	/** Whether it stands in the journal. */
	readonly journalled: boolean;
	/** Somebody waits until Postgres has it. */
	readonly posted: PromiseWithResolvers<void> | undefined;
	readonly #acknowledged: (settlement: Settlement) => void;

	constructor(
		{
			hold,
			event,
			json,
			charged,
			journalled,
			posted,
		}: Pick<Settlement, "event" | "json" | "charged" | "journalled" | "posted"> & { readonly hold: HoldOf<unknown> },
		acknowledged: (settlement: Settlement) => void,
	) {
		this.event = event;
		this.json = json;
		this.accountSlice = hold.account;
		this.keySlice = hold.key;
		this.furtherSlices = hold.further;
		this.reserved = hold.reserved;
		this.lowering = hold.lowering;
		this.segment = hold.segment;
		this.charged = charged;
		this.journalled = journalled;
		this.posted = posted;
		this.#acknowledged = acknowledged;
	}

	acknowledge(): void {
		this.#acknowledged(this);
	}
}
