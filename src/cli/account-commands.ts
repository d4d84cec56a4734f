import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import { readAutoTopUp } from "../billing/auto-top-ups.ts";
import { STOP_REASONS } from "../billing/stop-reasons.ts";
import type { Statements } from "../db/statements.ts";
import type { AccountRecord } from "../keys/account-admin.ts";
import {
	createAccount,
	findAccount,
	listAccounts,
	suspendAccount,
	unsuspendAccount,
	updateAccount,
} from "../keys/account-admin.ts";
import { accountBalance } from "../ledger/balance.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { Command } from "./command.ts";
import { actInForce, FENCE_OPTIONS, inForceOutput } from "./fence-output.ts";
import { PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { changesOf } from "./setting-options.ts";
import { listOutput } from "./table.ts";

const create: Command = {
	name: "account create",
	summary: "make an account",
	arguments: [],
	makesDatabase: true,
	options: {
		email: { type: "string", value: "E", required: true, help: "the owner's e-mail address" },
		name: { type: "string", value: "N", help: "a name; default: the address before the @" },
	},
	details: "It counts as signed in: whoever runs this vouches for the owner.",
	async run({ withDatabase }, input) {
		const name = input.option("name");
		const account = { email: input.required("email"), ...(name === undefined ? {} : { name }), vouched: true };
		const { id } = await withDatabase(({ statements }) => createAccount(statements, account));
		return { json: { id }, text: `made account ${id}` };
	},
};

const show: Command = {
	name: "account show",
	summary: "an account's credit",
	arguments: ["ID"],
	options: {},
	details:
		"ID may be the e-mail address. Held is what running requests have reserved, and what instances that are not live hold until their journals are replayed.",
	async run({ withDatabase }, input) {
		const [account, balance, automatic] = await withDatabase(async ({ statements }) => {
			const found = await namedAccount(statements, input.argument(0));
			return [found, await accountBalance(statements, found.id), await readAutoTopUp(statements, found.id)] as const;
		});
		const json = {
			id: account.id,
			balance_usd: formatUsd(balance.balance),
			held_usd: formatUsd(balance.held),
			available_usd: formatUsd(balance.available),
			spent_usd: formatUsd(balance.spent),
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
			`balance   USD ${json.balance_usd}`,
			`held      USD ${json.held_usd}`,
			`available USD ${json.available_usd}`,
			`spent     USD ${json.spent_usd}`,
			auto === null
				? "automatic top-ups: off"
				: `automatic top-ups: below USD ${auto.below_usd} buy USD ${auto.amount_usd}, at most USD ${auto.month_most_usd} a month; ${auto.state}${why}`,
		];
		return { json, text: text.join("\n") };
	},
};

const list: Command = {
	name: "account list",
	summary: "all accounts",
	arguments: [],
	options: PAGE_OPTIONS,
	async run({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listAccounts(statements, pageOf(input)));
		const head = ["ID", "E-MAIL", "NAME", "STATE", "TOPPED UP"];
		return listOutput(page, head, accountJson, (row) => [
			row.id,
			row.email,
			row.name,
			row.state,
			row.toppedUp ? "yes" : "no",
		]);
	},
};

const update: Command = {
	name: "account update",
	summary: "change an account's name or time zone",
	arguments: ["ID"],
	options: {
		name: { type: "string", value: "N", help: "a new name" },
		"time-zone": { type: "string", value: "Z", help: "in which periods of its keys' caps begin: UTC, Europe/Berlin" },
		...FENCE_OPTIONS,
	},
	details: "Returns when every instance goes by a new time zone.",
	async run({ withDatabase }, input) {
		const timeZone = input.option("time-zone");
		const changes = changesOf(input, timeZone === undefined ? {} : { timeZone });
		return withDatabase(async ({ statements, liveness }) => {
			const { id, entry } = await updateAccount(statements, input.argument(0), changes);
			if (entry === null) return { json: { id }, text: `changed account ${id}` };
			return inForceOutput({ liveness }, { id }, entry, input);
		});
	},
};

const suspend: Command = {
	name: "account suspend",
	summary: "admit nothing more for an account",
	arguments: ["ID"],
	options: FENCE_OPTIONS,
	details: "Returns when no instance admits its requests any more; running ones settle normally.",
	run: (context, input) => actInForce(context, input, suspendAccount, { state: "suspended" }),
};

const unsuspend: Command = {
	name: "account unsuspend",
	summary: "admit an account's requests again",
	arguments: ["ID"],
	options: FENCE_OPTIONS,
	run: (context, input) => actInForce(context, input, unsuspendAccount, { state: "active" }),
};

/** Finds the account that an argument or option names by id or e-mail address. Fault `not_found`. */
export async function namedAccount(statements: Statements, name: string) {
	const account = await findAccount(statements, name);
	if (account === null) throw new Fault("not_found", `There is no account ${name}.`);
	return account;
}

export const accountCommands: readonly Command[] = [create, show, list, update, suspend, unsuspend];

/** An account as scripts read it, from the command and from `/v1/management/` alike. */
const accountJson = (account: AccountRecord) => ({
	id: account.id,
	email: account.email,
	name: account.name,
	state: account.state,
	topped_up: account.toppedUp,
	time_zone: account.timeZone,
	signed_in_at: isoOrNull(account.signedInAtMs),
	created_at: isoOrNull(account.createdAtMs),
});
