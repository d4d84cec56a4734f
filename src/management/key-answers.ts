import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Parts } from "../console/console-deps.ts";
import type { KeyRecord, PlannedKey } from "../keys/key-admin.ts";
import {
	ACTIVE_KEYS_MAX,
	createKey,
	getKey,
	listKeys,
	revokeKey,
	rotateKey,
	shownKeyState,
	updateKey,
} from "../keys/key-admin.ts";
import { checkKeySettings } from "../keys/key-settings.ts";
import { derivedHex, derivedSecret, newSecret } from "../keys/secret.ts";
import { toAnswer } from "./management-answer.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { auditDetail, claimId, keySettings, listJson, queryParam, readPage, withFence } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";

/** Operations on any account's API keys, with the limits, fences and audit entries of the console. */
export function keyAnswers(
	parts: Parts<"statements" | "keyMaker" | "clock" | "fence">,
	mailOwners: (key: { accountId: string; keyId: string }) => Promise<boolean>,
) {
	const { statements, clock, keyMaker } = parts;
	const view = (key: KeyRecord) => keyView(key, clock.wallMs());

	/**
	 * Plans a new key. With a client token the id is stored first, and the secret is derived from id, token and pepper: a
	 * repeated call gets the same secret, although no secret is stored.
	 */
	async function plan(call: ManagementCall): Promise<PlannedKey> {
		const id = await claimId(parts, call, newId("key"));
		if (call.token === null) return { id, secret: newSecret(keyMaker.serviceName) };
		const hex = derivedHex(keyMaker.digest, "creation", call.caller.id, id, call.token);
		return { id, secret: derivedSecret(keyMaker.serviceName, hex) };
	}

	/** The secret; undefined if owners get a mail instead. Called after the creation, so that it sees new owners. */
	const secretFor = async (accountId: string, id: string, secret: string) =>
		(await mailOwners({ accountId, keyId: id })) ? null : secret;

	return {
		async listKeys(call: ManagementCall): Promise<ManagementAnswer> {
			const { items, next } = await listKeys(statements, queryParam(call, "account_id"), readPage(call));
			return listJson(items.map(view), next);
		},
		readKey: async (call: ManagementCall) => view(await getKey(statements, { id: call.id })),
		async createKey(call: ManagementCall<"createKey">): Promise<ManagementAnswer> {
			const { account_id: accountId, name, reads_only: readsOnly = false, ...given } = call.body;
			if (readsOnly && given.cap_usd)
				throw new Fault("invalid_request", "A read-only key cannot have a cap.", { param: "cap_usd" });
			const settings = { ...keySettings(given), name, readsOnly, activeMost: ACTIVE_KEYS_MAX };
			checkKeySettings(settings);
			const planned = await plan(call);
			const isPast = typeof settings.expiresAtMs === "number" && settings.expiresAtMs <= clock.wallMs();
			if (isPast && (await statements`select 1 from api_key where id = ${planned.id}`).length === 0)
				throw new Fault("invalid_request", "`expires_at` is in the past.", { param: "expires_at" });
			const act = call.noted("key.create", auditDetail(call));
			const { id, secret } = await createKey(keyMaker, accountId, settings, planned, act);
			return { ...view(await getKey(statements, { id })), secret: await secretFor(accountId, id, secret) };
		},
		async updateKey(call: ManagementCall<"updateKey">): Promise<ManagementAnswer> {
			const { name, ...given } = call.body;
			const changes = { ...keySettings(given), ...(name === undefined ? {} : { name }) };
			if (Object.keys(changes).length === 0) throw new Fault("invalid_request", "The body has no field to change.");
			const act = call.noted("key.update", auditDetail(call));
			const { id, ...entry } = await updateKey(statements, { id: call.id }, changes, call.match, act, ACTIVE_KEYS_MAX);
			return withFence(parts, call, { entry }, async () => view(await getKey(statements, { id })));
		},
		async revokeKey(call: ManagementCall): Promise<ManagementAnswer> {
			const act = call.noted("key.revoke");
			const { id, ...entry } = await revokeKey(statements, { id: call.id }, act);
			return withFence(parts, call, { entry, act }, async () => view(await getKey(statements, { id })));
		},
		async rotateKey(call: ManagementCall<"rotateKey">): Promise<ManagementAnswer> {
			const { grace_seconds: graceS } = call.body;
			const old = await getKey(statements, { id: call.id });
			const token =
				call.token === null
					? undefined
					: derivedHex(keyMaker.digest, "rotation by", call.caller.id, call.token).slice(0, 64);
			const act = call.noted("key.rotate", { graceMs: graceS * 1000 });
			const made = await rotateKey(keyMaker, { id: old.id }, graceS * 1000, token, ACTIVE_KEYS_MAX, act);
			return withFence(parts, call, { entry: made }, async () => {
				const key = view(await getKey(statements, { id: made.id }));
				return { ...key, secret: await secretFor(old.accountId, made.id, made.secret), replaces: old.id };
			});
		},
	};
}

const keyView = (key: KeyRecord, nowMs: number) =>
	toAnswer(MANAGEMENT_ANSWERS.ManagementKey, key, {
		state: shownKeyState(key, nowMs),
		models: key.models.length === 0 ? null : [...key.models],
		concurrency: key.concurrencyMax,
	});
