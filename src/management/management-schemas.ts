/** What `/v1/management/…` is sent and answers, as schemas: requests are checked by them, answers described. */
import { Type } from "@sinclair/typebox";
import { Count, exact, oneOf, orNull, Usd } from "../gateway/openapi/openapi-words.ts";
import { CAP_PERIODS } from "../keys/cap-period.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";

const Id = Type.String({ minLength: 1, maxLength: 64 });
const Moment = Type.String({ description: "ISO 8601, in UTC." });
const Etag = Type.String({ description: "The `ETag` of the resource, without quotes." });
const Reason = Type.String({ minLength: 3, maxLength: 500, description: "Kept in the audit log." });

const given = <T extends Record<string, ReturnType<typeof Type.Optional>>>(fields: T) => fields;
const ClientToken = Type.Optional(
	Type.String({
		pattern: "^[\\x21-\\x7e]{1,255}$",
		description: "The same as the header `Idempotency-Key`: repeated within a day it makes no second one.",
	}),
);
const UsdGiven = Type.String({
	pattern: "^\\d{1,9}(\\.\\d{1,9})?$",
	description: "US dollars as a decimal string, exact to nine decimals.",
});
const MomentGiven = Type.String({ maxLength: 40, description: "ISO 8601 with a zone: `2027-01-31T12:00:00Z`." });

/** Of a key and of a project. Absent: as it is (at creation: none). Null: none. */
const limits = given({
	cap_usd: Type.Optional(orNull(UsdGiven)),
	cap_period: Type.Optional(
		Type.Union(
			CAP_PERIODS.map((period) => Type.Literal(period)),
			{
				description:
					"How often the cap begins anew, in the account's time zone; at creation: never. It counts from then on.",
			},
		),
	),
	models: Type.Optional(orNull(Type.Array(Type.String({ maxLength: 200 }), { maxItems: 200 }))),
	requests_per_minute: Type.Optional(orNull(Type.Integer({ minimum: 1 }))),
	concurrency: Type.Optional(orNull(Type.Integer({ minimum: 1 }))),
});
const keySettings = given({
	...limits,
	expires_at: Type.Optional(orNull(MomentGiven)),
	project_id: Type.Optional(
		orNull(Type.String({ maxLength: 64, description: "The project that it belongs to, of the same account." })),
	),
});
const Name = Type.String({ minLength: 1, maxLength: 100 });

const ManagementAccountCreate = exact({
	email: Type.String({ minLength: 3, maxLength: 320 }),
	name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
	client_token: ClientToken,
});
const ManagementAccountUpdate = exact({
	name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
	state: Type.Optional(Type.Union([Type.Literal("active"), Type.Literal("suspended")])),
	time_zone: Type.Optional(
		Type.String({
			maxLength: 100,
			description: "In which periods of caps begin: UTC, or a name such as Europe/Berlin.",
		}),
	),
	reason: Type.Optional(Reason),
});
const ManagementKeyCreate = exact({
	account_id: Id,
	name: Name,
	...keySettings,
	reads_only: Type.Optional(
		Type.Boolean({
			description: "It reads models, credit and usage of its account and can do nothing else; for good.",
		}),
	),
	client_token: ClientToken,
});
const ManagementKeyUpdate = exact({ name: Type.Optional(Name), ...keySettings });
const ManagementKeyRotate = exact({
	grace_seconds: Type.Integer({ minimum: 0, maximum: 7_776_000, description: "How long the old secret still works." }),
	client_token: ClientToken,
});
const ManagementKeyRevoke = exact({});
const ManagementProjectCreate = exact({ name: Name, ...limits, client_token: ClientToken });
const ManagementProjectUpdate = exact({ name: Type.Optional(Name), ...limits });
const ManagementProjectArchive = exact({});
const person = given({
	user_id: Type.Optional(Id),
	email: Type.Optional(Type.String({ minLength: 3, maxLength: 320, description: "Instead of `user_id`." })),
});
const ManagementProjectMemberAdd = exact(person);
const ManagementProjectMemberRemove = exact({
	...person,
	keys: Type.Optional(
		Type.Union([Type.Literal("keep"), Type.Literal("revoke")], {
			description: "What becomes of the keys that this person made in the project; to be said where there are some.",
		}),
	),
});
const ManagementAdjustmentCreate = exact({
	account_id: Id,
	amount_usd: Type.String({
		pattern: "^-?\\d{1,9}(\\.\\d{1,9})?$",
		description: "US dollars as a decimal string, at most 100000, not zero; negative takes credit away.",
	}),
	reason: Reason,
	client_token: ClientToken,
});

const InForce = exact({
	effective: Type.Boolean({ description: "No instance acts by anything older any more." }),
	elapsed_ms: Type.Number({ minimum: 0 }),
	effective_by: orNull(Type.String({ description: "ISO 8601: when it is effective at the latest, if it is not yet." })),
	pending_instances: Count,
	known: Type.Boolean({
		description: "False: the database went away, and nobody knows how far the change has spread.",
	}),
});

const account = {
	object: Type.Literal("account"),
	id: Type.String(),
	email: Type.String(),
	name: Type.String(),
	state: oneOf("active", "suspended"),
	topped_up: Type.Boolean(),
	time_zone: Type.String(),
	signed_in_at: orNull(Moment),
	created_at: Moment,
	etag: Etag,
};
const capped = {
	cap_usd: orNull(Usd),
	cap_period: oneOf(...CAP_PERIODS),
	cap_spent_usd: Usd,
	cap_renews_at: orNull(Moment),
	spent_usd: Usd,
	models: orNull(Type.Array(Type.String())),
	requests_per_minute: orNull(Count),
	concurrency: orNull(Count),
};
const key = {
	object: Type.Literal("key"),
	id: Type.String(),
	account_id: Type.String(),
	name: Type.String(),
	prefix: Type.String(),
	last_four: Type.String(),
	state: oneOf("active", "expired", "revoked"),
	...capped,
	expires_at: orNull(Moment),
	project_id: orNull(Type.String()),
	replaced_by: orNull(Type.String()),
	last_used_at: orNull(Moment),
	created_at: Moment,
	revoked_at: orNull(Moment),
	reads_only: Type.Boolean(),
	etag: Etag,
};
const project = {
	object: Type.Literal("project"),
	id: Type.String(),
	account_id: Type.String(),
	name: Type.String(),
	state: oneOf("active", "archived"),
	...capped,
	keys: Type.Integer({ minimum: 0, description: "Keys in use." }),
	created_at: Moment,
	archived_at: orNull(Moment),
	etag: Etag,
};
const projectMember = {
	object: Type.Literal("project_member"),
	project_id: Type.String(),
	user_id: Type.String(),
	name: Type.String(),
	email: Type.String(),
	joined_at: Moment,
};
const secret = Type.String({ description: "Shown by this answer alone, and by its repetitions with the same token." });
const adjustment = {
	object: Type.Literal("credit_adjustment"),
	id: Type.String(),
	account_id: Type.String(),
	amount_usd: Usd,
	reason: Type.String(),
	state: oneOf("pending", "booked", "rejected"),
	asked_by: Type.String({ description: "The operator whose key asked for it, or `cli`." }),
	created_at: Moment,
};
const usageRow = {
	object: Type.Literal("usage"),
	day: Type.String({ description: "A day in UTC: `2027-01-31`." }),
	account_id: Type.String(),
	key_id: Type.String(),
	model: Type.String(),
	requests: Count,
	prompt_tokens: Count,
	cached_tokens: Count,
	completion_tokens: Count,
	reasoning_tokens: Count,
	cost_usd: Usd,
};
const model = {
	object: Type.Literal("model"),
	id: Type.String(),
	aliases: Type.Array(Type.String()),
	name: Type.String(),
	kind: Type.String(),
	modes: Type.Array(Type.String()),
	input_modalities: Type.Array(Type.String()),
	output_modalities: Type.Array(Type.String()),
	context_length: Count,
	max_output_tokens: Count,
	supported_parameters: Type.Array(Type.String()),
	pricing: Type.Record(Type.String(), Type.String(), { description: "US dollars per single unit." }),
	rate_card: Type.String(),
	expiration_date: orNull(Type.String({ format: "date" })),
	status: oneOf("connected", "unavailable"),
};
const deployment = {
	object: Type.Literal("deployment"),
	id: Type.String({ description: "Names the server; its address is not told." }),
	model: Type.String(),
	dialect: Type.String(),
	health: oneOf("unknown", "up", "down"),
	breaker: oneOf("closed", "half_open", "open"),
	in_flight: Count,
	max_concurrency: Count,
	draining: Type.Boolean(),
};

const list = <T extends ReturnType<typeof exact>>(data: T) =>
	exact({
		object: Type.Literal("list"),
		data: Type.Array(data),
		next: orNull(Type.String({ description: "The `after` of the next page; null: this is the last one." })),
		has_more: Type.Boolean(),
	});

export const MANAGEMENT_REQUESTS = {
	ManagementAccountCreate,
	ManagementAccountUpdate,
	ManagementKeyCreate,
	ManagementKeyUpdate,
	ManagementKeyRotate,
	ManagementKeyRevoke,
	ManagementProjectCreate,
	ManagementProjectUpdate,
	ManagementProjectArchive,
	ManagementProjectMemberAdd,
	ManagementProjectMemberRemove,
	ManagementAdjustmentCreate,
};

export const MANAGEMENT_ANSWERS = {
	ManagementAccount: exact(account),
	ManagementAccountList: list(exact(account)),
	ManagementAccountChanged: exact({ ...account, in_force: orNull(InForce) }),
	ManagementCredit: exact({
		object: Type.Literal("credit"),
		account_id: Type.String(),
		balance_usd: Usd,
		held_usd: Usd,
		available_usd: Usd,
		spent_usd: Usd,
	}),
	ManagementKey: exact(key),
	ManagementKeyList: list(exact(key)),
	ManagementKeyMade: exact({ ...key, secret }),
	ManagementKeyChanged: exact({ ...key, in_force: InForce }),
	ManagementKeyRotated: exact({ ...key, secret, replaces: Type.String(), in_force: InForce }),
	ManagementProject: exact(project),
	ManagementProjectList: list(exact(project)),
	ManagementProjectChanged: exact({ ...project, in_force: InForce }),
	ManagementProjectMember: exact(projectMember),
	ManagementProjectMemberList: list(exact(projectMember)),
	ManagementProjectMemberRemoved: exact({
		object: Type.Literal("project_member"),
		project_id: Type.String(),
		user_id: Type.String(),
		removed: Type.Literal(true),
		revoked_keys: Type.Array(Type.String()),
		in_force: orNull(InForce),
	}),
	ManagementAdjustment: exact(adjustment),
	ManagementAdjustmentList: list(exact(adjustment)),
	ManagementUsageList: list(exact(usageRow)),
	ManagementModelList: list(exact(model)),
	ManagementDeploymentList: list(exact(deployment)),
	ManagementCatalog: exact({
		object: Type.Literal("catalog"),
		digest: orNull(Type.String({ description: "Of what the newest live gateway serves; null without one." })),
		in_agreement: Type.Boolean({ description: "All live gateways serve the same." }),
		models: Count,
		gateways: Type.Array(
			exact({ instance_id: Type.String(), digest: Type.String(), models: Count, changed_at: Moment }),
		),
	}),
	ManagementSelf: exact({
		object: Type.Literal("management_key"),
		id: Type.String(),
		name: Type.String(),
		scopes: Type.Array(oneOf(...MANAGEMENT_SCOPES)),
		expires_at: orNull(Moment),
		created_at: Moment,
	}),
};
