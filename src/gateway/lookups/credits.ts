import type { Statements } from "../../db/statements.ts";
import { accountBalance } from "../../ledger/balance.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import { formatUsd, shownSum } from "../../money/nano-usd.ts";
import { askDatabase } from "./ask-database.ts";

/** Answer of GET /v1/credits: OpenRouter's fields, and exact decimal strings. */
export interface CreditsAnswer {
	readonly data: {
		/** Total booked and total spent: US dollars as JSON numbers. */
		readonly total_credits: number;
		readonly total_usage: number;
		/** Unspent: `available_usd` + `held_usd`. */
		readonly balance_usd: string;
		readonly available_usd: string;
		/** Reserved by running requests. */
		readonly held_usd: string;
		readonly spent_usd: string;
	};
}

/** GET /v1/credits: the account's balance, holds and spending. */
export async function creditsAnswer(statements: Statements, accountId: string): Promise<CreditsAnswer> {
	const { balance, available, held, spent } = await askDatabase(() => accountBalance(statements, accountId));
	return {
		data: {
			total_credits: jsonUsd(shownSum(balance, spent)),
			total_usage: jsonUsd(spent),
			balance_usd: formatUsd(balance),
			available_usd: formatUsd(available),
			held_usd: formatUsd(held),
			spent_usd: formatUsd(spent),
		},
	};
}
