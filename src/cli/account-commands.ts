import { isoOrNull } from "../base/iso-date.ts";
import { readAutoTopUp } from "../billing/auto-top-ups.ts";
import { STOP_REASONS } from "../billing/stop-reasons.ts";
import type { AccountRecord } from "../keys/account-admin.ts";
import {
	createAccount,
	getAccount,
	listAccounts,
	suspendAccount,
	unsuspendAccount,
	updateAccount,
} from "../keys/account-admin.ts";
import { accountBalance } from "../ledger/balance.ts";
import { jsonFields } from "../money/json-fields.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { CommandRuns } from "./command.ts";
import { actAndFence, fenceOutput } from "./fence-output.ts";
import { parseAccountTerms, parseChanges, parsePage } from "./setting-options.ts";
import { listOutput } from "./table.ts";

export const accountCommands: CommandRuns = {
	async "account create"({ withDatabase }, input) {
		const name = input.option("name");
		const account = { email: input.required("email"), ...(name === undefined ? {} : { name }), vouched: true };
		const { id } = await withDatabase(({ statements }) => createAccount(statements, account));
		return { json: { id }, text: `created account ${id}` };
	},
	async "account show"({ withDatabase }, input) {
		const [account, balance, automatic] = await withDatabase(async ({ statements }) => {
			const found = await getAccount(statements, input.argument(0));
			return [found, await accountBalance(statements, found.id), await readAutoTopUp(statements, found.id)] as const;
		});
		const json = {
			id: account.id,
			balance_usd: formatUsd(balance.balance),
			held_usd: formatUsd(balance.held),
			available_usd: formatUsd(balance.available),
			spent_usd: formatUsd(balance.spent),
			tags: account.tags,
			tokens_per_minute: account.tokensPerMinute,
			auto_top_up:
				automatic === null
					? null
					: {
							below_usd: formatUsd(automatic.belowNanoUsd),
							amount_usd: formatUsd(automatic.amountNanoUsd),
							month_most_usd: formatUsd(automatic.monthMostNanoUsd),
							state: automatic.state,
							reason: automatic.reason,
						},
		};
		const auto = json.auto_top_up;
		const why = automatic?.reason ? `: ${STOP_REASONS[automatic.reason]}` : "";
		const text = [
			`${account.id}  ${account.email}  ${account.name}  ${account.state}`,
			`signed in ${isoOrNull(account.signedInAtMs) ?? "never"}, topped up: ${account.toppedUp ? "yes" : "no"}`,
			`tags: ${account.tags.join(",") || "none"}, tokens per minute: ${account.tokensPerMinute ?? "as its tags"}`,
			`balance   USD ${json.balance_usd}`,
			`held      USD ${json.held_usd}`,
			`available USD ${json.available_usd}`,
			`spent     USD ${json.spent_usd}`,
			auto === null
				? "automatic top-ups: off"
				: `automatic top-ups: USD ${auto.amount_usd} below a balance of USD ${auto.below_usd}, at most USD ${auto.month_most_usd} a month; ${auto.state}${why}`,
		];
		return { json, text: text.join("\n") };
	},
	async "account list"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listAccounts(statements, parsePage(input)));
		return listOutput(page, accountJson, ["ID", "E-MAIL", "NAME", "STATE", "TOPPED UP"]);
	},
	async "account update"({ withDatabase }, input) {
		const changes = parseChanges(input, parseAccountTerms(input));
		return withDatabase(async ({ statements, liveness }) => {
			const { id, entry } = await updateAccount(statements, input.argument(0), changes);
			if (entry === null) return { json: { id }, text: `updated account ${id}` };
			return fenceOutput({ liveness }, { id }, entry, input);
		});
	},
	"account suspend": (context, input) => actAndFence(context, input, suspendAccount, { state: "suspended" }),
	"account unsuspend": (context, input) => actAndFence(context, input, unsuspendAccount, { state: "active" }),
};

const accountJson = (account: AccountRecord) =>
	jsonFields("id email name state topped_up time_zone tags tokens_per_minute signed_in_at created_at", account);
