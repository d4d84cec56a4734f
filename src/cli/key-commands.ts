import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import type { CapPeriod } from "../keys/cap-period.ts";
import { createDigest } from "../keys/digest.ts";
import type { KeyMakerDeps, KeyRecord } from "../keys/key-admin.ts";
import { createKey, listKeys, revokeKey, rotateKey, updateKey } from "../keys/key-admin.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { loadOrCreateSecrets } from "../secrets.ts";
import type { Command, CommandContext, CommandInput, OptionSpec } from "./command.ts";
import { UsageError } from "./command.ts";
import { FENCE_OPTIONS, inForceOutput } from "./fence-output.ts";
import { dateMsOf, durationMsOf, namesOf, PAGE_OPTIONS, pageOf, usdOf, wholeOf } from "./option-values.ts";
import { isoOrNull, listOutput } from "./table.ts";

const GRACE_DEFAULT = "1h";

const SETTING_OPTIONS = {
	"cap-usd": { type: "string", value: "USD", help: "the most that it may spend, or none" },
	"cap-period": {
		type: "string",
		value: "P",
		help: "how often the cap begins anew in the account's time zone: lifetime (never), day, week or month",
	},
	models: { type: "string", value: "A,B", help: "ids of the models that it may use, or all" },
	expires: { type: "string", value: "ISO", help: "when it ends: 2027-01-31 or 2027-01-31T12:00:00Z, or never" },
	"requests-per-minute": { type: "string", value: "N", help: "the most requests a minute, or none" },
	concurrency: { type: "string", value: "N", help: "the most requests at once, or none" },
} as const satisfies Record<string, OptionSpec>;

const create: Command = {
	name: "key create",
	summary: "make an API key; its secret is shown this once",
	arguments: [],
	options: {
		account: { type: "string", value: "ID", required: true, help: "the account that it belongs to" },
		name: { type: "string", value: "N", required: true, help: "a name, as production or staging" },
		...SETTING_OPTIONS,
	},
	async run(context, input) {
		const settings = { ...settingsOf(input), name: input.required("name") };
		if (typeof settings.expiresAtMs === "number" && settings.expiresAtMs <= Date.now())
			throw new UsageError("--expires lies in the past");
		const made = await context.withDatabase(({ statements }) =>
			createKey(keyMaker(context, statements), input.required("account"), settings),
		);
		return madeKey(made);
	},
};

function madeKey({ id, secret }: { id: string; secret: string }) {
	return {
		json: { id, secret },
		text: `made key ${id}\n\n  ${secret}\n\nThis is the only time that the secret is shown.`,
	};
}

const list: Command = {
	name: "key list",
	summary: "an account's keys",
	arguments: [],
	options: { account: { type: "string", value: "ID", required: true, help: "whose" }, ...PAGE_OPTIONS },
	async run({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listKeys(statements, input.required("account"), pageOf(input)));
		const head = ["ID", "NAME", "SECRET", "STATE", "SPENT", "CAP", "MODELS", "EXPIRES"];
		return listOutput(page, head, keyJson, (row) => [
			row.id,
			row.name,
			`${row.prefix}…${row.lastFour}`,
			row.state,
			formatUsd(row.spentNanoUsd),
			capText(row),
			row.models.length === 0 ? "all" : row.models.join(","),
			isoOrNull(row.expiresAtMs) ?? "never",
		]);
	},
};

const revoke: Command = {
	name: "key revoke",
	summary: "end an API key everywhere",
	arguments: ["ID"],
	options: FENCE_OPTIONS,
	details:
		"Returns when no instance admits a request by it any more; what was admitted settles normally. An instance that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	run: ({ withDatabase }, input) =>
		withDatabase(async ({ statements, liveness }) => {
			const { id, seq } = await revokeKey(statements, { id: input.argument(0) });
			return inForceOutput({ liveness }, { id }, seq, input);
		}),
};

const rotate: Command = {
	name: "key rotate",
	summary: "replace an API key; the new secret is shown this once",
	arguments: ["ID"],
	options: {
		grace: {
			type: "string",
			value: "TIME",
			help: `how long the old key still works: 30m, 1h, 2d or 0; default ${GRACE_DEFAULT}`,
		},
		token: {
			type: "string",
			value: "TEXT",
			help: "repeats a rotation whose answer was lost: the same token gives the same secret for an hour",
		},
		...FENCE_OPTIONS,
	},
	details:
		"The new key has the same settings and its whole cap. Returns when every instance knows the old key's end; an instance that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	async run(context, input) {
		const id = input.argument(0);
		const graceMs = durationMsOf("grace", input.option("grace") ?? GRACE_DEFAULT);
		const token = input.option("token") ?? crypto.randomUUID();
		return context.withDatabase(async ({ statements, liveness }) => {
			const made = await rotateKey(keyMaker(context, statements), { id }, graceMs, token).catch((error: unknown) => {
				if (!(error instanceof Fault))
					context.note(`whether ${id} was replaced is not known: run this again with --token ${token}`);
				throw error;
			});
			const inForce = await inForceOutput({ liveness }, { id }, made.seq, input);
			const shown = madeKey(made);
			return { ...inForce, json: { ...inForce.json, ...shown.json }, text: `${shown.text}\n\n${inForce.text}` };
		});
	},
};

const update: Command = {
	name: "key update",
	summary: "change an API key's settings",
	arguments: ["ID"],
	options: { name: { type: "string", value: "N", help: "a new name" }, ...SETTING_OPTIONS, ...FENCE_OPTIONS },
	details:
		"Returns when every instance goes by the new settings; one that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	async run({ withDatabase }, input) {
		const name = input.option("name");
		const changes = { ...settingsOf(input), ...(name === undefined ? {} : { name }) };
		if (Object.keys(changes).length === 0) throw new UsageError("nothing to change was given");
		return withDatabase(async ({ statements, liveness }) => {
			const { id, seq } = await updateKey(statements, { id: input.argument(0) }, changes);
			return inForceOutput({ liveness }, { id }, seq, input);
		});
	},
};

export const keyCommands: readonly Command[] = [create, list, revoke, rotate, update];

function settingsOf(input: CommandInput): KeySettings {
	const read = <Value>(
		option: keyof typeof SETTING_OPTIONS,
		none: string,
		parse: (option: string, text: string) => Value,
	) => {
		const text = input.option(option);
		return text === undefined ? undefined : text === none ? null : parse(option, text);
	};
	const settings = {
		capNanoUsd: read("cap-usd", "none", usdOf),
		capPeriod: input.option("cap-period") as CapPeriod | undefined,
		models: read("models", "all", (_, text) => namesOf(text)),
		expiresAtMs: read("expires", "never", dateMsOf),
		requestsPerMinute: read("requests-per-minute", "none", wholeOf),
		concurrencyMax: read("concurrency", "none", wholeOf),
	};
	return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as KeySettings;
}

/** What making a secret takes, on the command line. */
export function keyMaker(context: CommandContext, statements: Statements): KeyMakerDeps {
	const config = context.config();
	const secrets = loadOrCreateSecrets(config);
	if (secrets.made.includes("KEY_PEPPER"))
		context.note(`KEY_PEPPER is not set: one was made and is kept in ${secrets.path}`);
	return { statements, digest: createDigest(secrets.keyPepper), serviceName: config.serviceName };
}

/** `5.00`, or `1.25 of 5.00 a day`: of a cap that begins anew what is spent of it counts. */
function capText({ capNanoUsd: cap, capPeriod, capSpentNanoUsd: spent }: KeyRecord): string {
	if (cap === null) return "none";
	return capPeriod === "lifetime" ? formatUsd(cap) : `${formatUsd(spent)} of ${formatUsd(cap)} a ${capPeriod}`;
}

function keyJson(key: KeyRecord): Record<string, unknown> {
	return {
		id: key.id,
		account: key.accountId,
		name: key.name,
		prefix: key.prefix,
		last_four: key.lastFour,
		state: key.state,
		cap_usd: key.capNanoUsd === null ? null : formatUsd(key.capNanoUsd),
		cap_period: key.capPeriod,
		cap_spent_usd: formatUsd(key.capSpentNanoUsd),
		cap_renews_at: isoOrNull(key.capRenewsAtMs),
		spent_usd: formatUsd(key.spentNanoUsd),
		models: key.models,
		expires_at: isoOrNull(key.expiresAtMs),
		requests_per_minute: key.requestsPerMinute,
		concurrency: key.concurrencyMax,
		replaced_by: key.replacedBy,
		last_used_at: isoOrNull(key.lastUsedAtMs),
		created_at: isoOrNull(key.createdAtMs),
		revoked_at: isoOrNull(key.revokedAtMs),
	};
}
