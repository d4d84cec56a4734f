import { Fault, type FaultCode, type FaultDetail } from "../base/fault.ts";
import { type Model, unknownText } from "../catalog/model.ts";
import { isVisible } from "../catalog/visibility.ts";
import type { KeyEntry } from "./key-entry.ts";

/**
 * Throws unless this key may spend now: `checkKey`, a sign-in and a top-up. Synchronous, because it runs in the block
 * that admits a request: an applied revocation takes effect at once. Faults: `sign_in_required`, `top_up_required`.
 */
export function checkAccess(entry: KeyEntry, nowMs: number): void {
	checkKey(entry, nowMs);
	if (!entry.account.signedIn) throw new Fault("sign_in_required", "Sign in to the console once before using the API.");
	if (!entry.account.toppedUp)
		throw new Fault("top_up_required", "The API requires at least one confirmed top-up of USD 100 or more.");
}

/** Error for a known key that may not be used. Contains the key, so that the refusal appears in its account's log. */
export class KeyFault extends Fault {
	readonly key: KeyEntry;

	constructor(key: KeyEntry, code: FaultCode, text: string, detail: FaultDetail = {}) {
		super(code, text, detail);
		this.key = key;
	}
}

/** What a request does with a key. `reads`: only reading, which read-only keys may do. */
export type KeyUse = "all" | "reads";

/**
 * Throws unless this key is active and its account not suspended. KeyFaults: `api_key_revoked`, `api_key_expired`,
 * `account_suspended`, `project_archived`, `read_only_key`. Fault `service_unavailable` for a key evicted from memory.
 */
export function checkKey(entry: KeyEntry, nowMs: number, use: KeyUse = "all"): void {
	if (!entry.current) {
		throw new Fault("service_unavailable", "The service is loading recent changes. Please try again.", {
			retryAfterS: 1,
			private: `the keyring let go of ${entry.id} while the request was read`,
		});
	}
	if (entry.state === "revoked")
		throw new KeyFault(entry, "api_key_revoked", "This API key was revoked. Use another key of your account.");
	if (entry.expiresAtMs !== null && nowMs >= entry.expiresAtMs) {
		throw new KeyFault(entry, "api_key_expired", "This API key expired at {moment}. Use another key of your account.", {
			values: { moment: new Date(entry.expiresAtMs).toISOString() },
		});
	}
	if (entry.account.state === "suspended")
		throw new KeyFault(
			entry,
			"account_suspended",
			"This account is suspended. Please contact the operator of the service.",
		);
	if (entry.project?.state === "archived")
		throw new KeyFault(
			entry,
			"project_archived",
			"The project of this API key was archived. Use a key of another project of your account.",
		);
	if (entry.readsOnly && use !== "reads")
		throw new KeyFault(
			entry,
			"read_only_key",
			"This API key is read-only: it can only call /v1/usage, /v1/credits, /v1/key and /v1/models. Use another key of your account.",
		);
}

/** The models that a key may use: its own list and that of its project. */
export type AllowedModels = Pick<KeyEntry, "models" | "project">;

/** Throws Fault `model_not_found` for a model that only other accounts may see; then as `checkModelAllowed`. */
export function checkModel(key: KeyEntry, model: Model): void {
	if (!isVisible(model, key.account)) throw new Fault("model_not_found", [unknownText(model.id)], { param: "model" });
	checkModelAllowed(key, model.id);
}

/** Throws Fault `model_not_allowed`, which says whether the key's or the project's list lacks the model. */
export function checkModelAllowed(allowed: AllowedModels, id: string): void {
	if (mayUseModel(allowed, id)) return;
	const text = mayUseModel({ models: allowed.models, project: null }, id)
		? "The project of this API key may not use the model `{id}`. Allow the model for the project, or use another key."
		: "This API key may not use the model `{id}`. Allow the model for the key, or use another key.";
	throw new Fault("model_not_allowed", text, { values: { id }, param: "model" });
}

export function mayUseModel({ models, project }: AllowedModels, id: string): boolean {
	return (models === null || models.has(id)) && (project === null || project.models === null || project.models.has(id));
}
