import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { getAccount } from "../keys/account-admin.ts";
import type { KeyMakerDeps, KeyRecord } from "../keys/key-admin.ts";
import { createKey, listKeys, revokeKey, rotateKey, shownKeyState, updateKey } from "../keys/key-admin.ts";
import { createDigest } from "../keys/secret.ts";
import { jsonFields } from "../money/json-fields.ts";
import { loadOrCreatePepper } from "../secrets.ts";
import { type CommandContext, type CommandRuns, UsageError } from "./command.ts";
import { actAndFence, fenceOutput } from "./fence-output.ts";
import {
	capText,
	limitsJson,
	modelsText,
	parseChanges,
	parseDurationMs,
	parseKeySettings,
	parsePage,
	secretText,
} from "./setting-options.ts";
import { listOutput } from "./table.ts";

const GRACE_DEFAULT = "1h";

export const keyCommands: CommandRuns = {
	async "key create"(context, input) {
		const settings = { ...parseKeySettings(input), name: input.required("name"), readsOnly: input.flag("reads-only") };
		if (settings.readsOnly && settings.capNanoUsd)
			throw new UsageError("a key with --reads-only cannot have --cap-usd");
		if (typeof settings.expiresAtMs === "number" && settings.expiresAtMs <= Date.now())
			throw new UsageError("--expires is in the past");
		const made = await context.withDatabase(({ statements }) =>
			createKey(keyMaker(context, statements), input.required("account"), settings),
		);
		return formatNewKey(made);
	},
	async "key list"({ withDatabase }, input) {
		const page = await withDatabase(async ({ statements }) => {
			const { id } = await getAccount(statements, input.required("account"));
			return listKeys(statements, id, parsePage(input));
		});
		const columns = ["ID", "NAME", "SECRET", "STATE", "SPENT", "CAP", "PROJECT", "MODELS", "EXPIRES"];
		return listOutput(page, keyJson, columns, {
			SECRET: secretText,
			STATE: stateText,
			CAP: (row) => (row.readsOnly ? "reads only" : capText(row)),
			PROJECT: (row) => row.projectName ?? "none",
			MODELS: modelsText,
		});
	},
	"key revoke": (context, input) => actAndFence(context, input, (statements, id) => revokeKey(statements, { id })),
	async "key rotate"(context, input) {
		const id = input.argument(0);
		const graceMs = parseDurationMs("grace", input.option("grace") ?? GRACE_DEFAULT);
		const token = input.option("token") ?? crypto.randomUUID();
		return context.withDatabase(async ({ statements, liveness }) => {
			const made = await rotateKey(keyMaker(context, statements), { id }, graceMs, token).catch((error: unknown) => {
				if (!(error instanceof Fault))
					context.note(`it is unknown whether ${id} was replaced: run the command again with --token ${token}`);
				throw error;
			});
			const again = `\`tollgate key rotate ${id} --token ${token}\` shows the same secret for an hour`;
			// Printed before the wait: an interruption would lose the new secret, and the old key may have ended.
			context.note(`${id} is replaced by ${made.id}. After an interruption, ${again}`);
			const inForce = await fenceOutput({ liveness }, { id }, made, input);
			const shown = formatNewKey(made);
			return {
				...inForce,
				...shown,
				ifLost: again,
				json: { ...inForce.json, ...shown.json },
				text: `${shown.text}\n\n${inForce.text}`,
			};
		});
	},
	async "key update"(context, input) {
		const changes = parseChanges(input, parseKeySettings(input));
		return actAndFence(context, input, (statements, id) => updateKey(statements, { id }, changes));
	},
};

export const formatNewKey = ({ id, secret }: { id: string; secret: string }, kind = "key") => ({
	json: { id, secret },
	text: `created ${kind} ${id}\n\n  ${secret}\n\nThe secret is shown only once.`,
	ifLost: `revoke ${id}, because its secret is lost`,
});

export function keyMaker(context: CommandContext, statements: Statements): KeyMakerDeps {
	const config = context.config();
	const { keyPepper, isNew, path } = loadOrCreatePepper(config);
	if (isNew) context.note(`KEY_PEPPER is not set: created one in ${path}`);
	return { statements, digest: createDigest(keyPepper), serviceName: config.serviceName };
}

function stateText(key: KeyRecord): string {
	const state = shownKeyState(key, systemClock.wallMs());
	return state === "active" && key.projectState === "archived" ? "archived" : state;
}

const keyJson = (key: KeyRecord) => ({
	id: key.id,
	account: key.accountId,
	...jsonFields("name prefix last_four", key),
	state: shownKeyState(key, systemClock.wallMs()),
	...limitsJson(key),
	project: key.projectId,
	...jsonFields("project_state expires_at replaced_by last_used_at created_at revoked_at reads_only", key),
});
