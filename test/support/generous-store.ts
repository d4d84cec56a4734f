import type { GrantReply, LedgerStore } from "../../src/ledger/store.ts";
import { maxUsd, type NanoUsd } from "../../src/money/nano-usd.ts";

export const grantReply = (op: string, amount: NanoUsd, more: Partial<GrantReply> = {}): GrantReply => ({
	...{ op, amount, available: null, unanswered: 0, lent: null, contested: false, busy: false, untimely: false },
	...more,
});

/** A ledger store that grants every amount once `granted` resolves, and accepts every batch of settlements. */
export const generousStore = (granted?: () => Promise<void> | undefined): LedgerStore => ({
	async grant(requests) {
		await granted?.();
		return requests.map(({ op, want, min }) => grantReply(op, maxUsd(want, min)));
	},
	giveBack: async () => new Set(),
	flush: async () => ({ late: false, fresh: 0, busy: new Set() }),
	async settleLate() {},
	close: async () => ({ closed: 0, done: true }),
	recall: async () => 1,
	recalls: async () => [],
});
