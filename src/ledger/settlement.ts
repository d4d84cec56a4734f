import type { NanoUsd } from "../money/nano-usd.ts";
import type { HoldOf } from "./hold.ts";
import type { QueuedSettlement } from "./writer.ts";

/** How a hold ended, on its way to Postgres. */
export class Settlement implements QueuedSettlement {
	readonly id: string;
	readonly account: string;
	readonly key: string;
	readonly budgets: readonly string[] | undefined;
	readonly json: string;
	readonly hold: HoldOf<unknown>;
	readonly charged: NanoUsd;
	/** Whether it stands in the journal. */
	readonly journalled: boolean;
	/** Somebody waits until Postgres has it. */
	readonly posted: PromiseWithResolvers<void> | undefined;
	readonly #acknowledged: (settlement: Settlement) => void;

	constructor(
		{
			hold,
			json,
			charged,
			journalled,
			posted,
		}: Pick<Settlement, "hold" | "json" | "charged" | "journalled" | "posted">,
		acknowledged: (settlement: Settlement) => void,
	) {
		this.id = hold.admitted.id;
		this.account = hold.admitted.account;
		this.key = hold.admitted.key;
		this.budgets = hold.admitted.budgets;
		this.json = json;
		this.hold = hold;
		this.charged = charged;
		this.journalled = journalled;
		this.posted = posted;
		this.#acknowledged = acknowledged;
	}

	acknowledge(): void {
		this.#acknowledged(this);
	}
}
