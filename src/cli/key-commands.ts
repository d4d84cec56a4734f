import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import type { Statements } from "../db/statements.ts";
import { createDigest } from "../keys/digest.ts";
import type { KeyMakerDeps, KeyRecord } from "../keys/key-admin.ts";
import { createKey, listKeys, revokeKey, rotateKey, shownKeyState, updateKey } from "../keys/key-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { loadOrCreatePepper } from "../secrets.ts";
import { namedAccount } from "./account-commands.ts";
import type { Command, CommandContext } from "./command.ts";
import { UsageError } from "./command.ts";
import { actInForce, FENCE_OPTIONS, inForceOutput } from "./fence-output.ts";
import { durationMsOf, PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { capText, changesOf, KEY_OPTIONS, keySettingsOf } from "./setting-options.ts";
import { listOutput } from "./table.ts";

const GRACE_DEFAULT = "1h";

const create: Command = {
	name: "key create",
	summary: "make an API key; its secret is shown this once",
	arguments: [],
	options: {
		account: { type: "string", value: "ID", required: true, help: "the account that it belongs to" },
		name: { type: "string", value: "N", required: true, help: "a name, as production or staging" },
		...KEY_OPTIONS,
		"reads-only": { type: "boolean", help: "it reads models, credit and usage and can do nothing else; for good" },
	},
	async run(context, input) {
		const settings = { ...keySettingsOf(input), name: input.required("name"), readsOnly: input.flag("reads-only") };
		if (settings.readsOnly && settings.capNanoUsd) throw new UsageError("a key that --reads-only has no --cap-usd");
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
		ifLost: `revoke ${id}, whose secret is lost by it`,
	};
}

const list: Command = {
	name: "key list",
	summary: "an account's keys",
	arguments: [],
	options: { account: { type: "string", value: "ID", required: true, help: "whose" }, ...PAGE_OPTIONS },
	async run({ withDatabase }, input) {
		const page = await withDatabase(async ({ statements }) => {
			const { id } = await namedAccount(statements, input.required("account"));
			return listKeys(statements, id, pageOf(input));
		});
		const head = ["ID", "NAME", "SECRET", "STATE", "SPENT", "CAP", "PROJECT", "MODELS", "EXPIRES"];
		return listOutput(page, head, keyJson, (row) => [
			row.id,
			row.name,
			`${row.prefix}…${row.lastFour}`,
			stateText(row),
			formatUsd(row.spentNanoUsd),
			row.readsOnly ? "reads only" : capText(row),
			row.projectName ?? "none",
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
	run: (context, input) => actInForce(context, input, (statements, id) => revokeKey(statements, { id })),
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
			const again = `\`tollgate key rotate ${id} --token ${token}\` shows the same secret for an hour`;
			// The old key may already be dead. Interrupting the wait would lose the new secret, so the note comes first.
			context.note(`${id} is replaced by ${made.id}; should this be interrupted, ${again}`);
			const inForce = await inForceOutput({ liveness }, { id }, made, input);
			const shown = madeKey(made);
			return {
				...inForce,
				...shown,
				ifLost: again,
				json: { ...inForce.json, ...shown.json },
				text: `${shown.text}\n\n${inForce.text}`,
			};
		});
	},
};

const update: Command = {
	name: "key update",
	summary: "change an API key's settings",
	arguments: ["ID"],
	options: { name: { type: "string", value: "N", help: "a new name" }, ...KEY_OPTIONS, ...FENCE_OPTIONS },
	details:
		"Returns when every instance goes by the new settings; one that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	async run(context, input) {
		const changes = changesOf(input, keySettingsOf(input));
		return actInForce(context, input, (statements, id) => updateKey(statements, { id }, changes));
	},
};

export const keyCommands: readonly Command[] = [create, list, revoke, rotate, update];

/** The dependencies for making secrets on the command line. */
export function keyMaker(context: CommandContext, statements: Statements): KeyMakerDeps {
	const config = context.config();
	const { keyPepper, isNew, path } = loadOrCreatePepper(config);
	if (isNew) context.note(`KEY_PEPPER is not set: one was made and is kept in ${path}`);
	return { statements, digest: createDigest(keyPepper), serviceName: config.serviceName };
}

function stateText(key: KeyRecord): string {
	const state = shownKeyState(key, systemClock.wallMs());
	return state === "active" && key.projectState === "archived" ? "archived" : state;
}

function keyJson(key: KeyRecord): Record<string, unknown> {
	return {
		id: key.id,
		account: key.accountId,
		name: key.name,
		prefix: key.prefix,
		last_four: key.lastFour,
		state: shownKeyState(key, systemClock.wallMs()),
		cap_usd: key.capNanoUsd === null ? null : formatUsd(key.capNanoUsd),
		cap_period: key.capPeriod,
		cap_spent_usd: formatUsd(key.capSpentNanoUsd),
		cap_renews_at: isoOrNull(key.capRenewsAtMs),
		spent_usd: formatUsd(key.spentNanoUsd),
		models: key.models,
		project: key.projectId,
		project_state: key.projectState,
		expires_at: isoOrNull(key.expiresAtMs),
		requests_per_minute: key.requestsPerMinute,
		concurrency: key.concurrencyMax,
		replaced_by: key.replacedBy,
		last_used_at: isoOrNull(key.lastUsedAtMs),
		created_at: isoOrNull(key.createdAtMs),
		revoked_at: isoOrNull(key.revokedAtMs),
		reads_only: key.readsOnly,
	};
}
