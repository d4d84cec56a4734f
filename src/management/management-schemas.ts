/** Schemas of `/v1/management/…`, which check requests, build responses and appear in the OpenAPI document. */
import { type TProperties, Type } from "@sinclair/typebox";
import { Count, exact, fieldsAs, oneOf, orNull, Text, Usd } from "../gateway/openapi/openapi-text-answers.ts";
import { CAP_PERIODS } from "../keys/cap-period.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";

const Moment = Type.String({ description: "ISO 8601, in UTC." });
const Etag = Type.String({ description: "The `ETag` of the resource, without quotes." });

const text = (maxLength: number, minLength?: number) =>
	Type.String({ maxLength, ...(minLength === undefined ? {} : { minLength }) });
const Id = text(64, 1);
const Name = text(100, 1);
const Reason = Type.String({ minLength: 3, maxLength: 500, description: "Recorded in the audit log." });
const MomentGiven = Type.String({ maxLength: 40, description: "ISO 8601 with a zone: `2027-01-31T12:00:00Z`." });
const UsdGiven = Type.String({
	pattern: "^\\d{1,9}(\\.\\d{1,9})?$",
	description: "US dollars as a decimal string, exact to nine decimals.",
});
const optional = <T extends TProperties>(fields: T) => Type.Partial(Type.Object(fields)).properties;
const token = optional({
	client_token: Type.String({
		pattern: "^[\\x21-\\x7e]{1,255}$",
		description: "Same as the header `Idempotency-Key`: a repetition within a day creates nothing new.",
	}),
});

const Percent = orNull(Type.String({ maxLength: 10, description: "Percent off the list price: `12.5`." }));
const RATES = "Own rates as in `tollgate.yaml`, one for each that the list price charges.";
const OwnRates = orNull(Type.Record(Type.String({ maxLength: 20 }), text(30), { description: RATES }));

const Tokens = orNull(Type.Integer({ minimum: 1, description: "Prompt and completion tokens together." }));
/** Limits of a key or project. An absent field keeps its limit (at creation: no limit); null removes the limit. */
const limits = optional({
	cap_usd: orNull(UsdGiven),
	cap_period: Type.Union(
		CAP_PERIODS.map((period) => Type.Literal(period)),
		{ description: "How often the cap resets, in the account's time zone. Default: `lifetime`, which never resets." },
	),
	models: orNull(Type.Array(text(200), { maxItems: 200 })),
	requests_per_minute: orNull(Type.Integer({ minimum: 1 })),
	concurrency: orNull(Type.Integer({ minimum: 1 })),
	tokens_per_minute: Tokens,
});
const keySettings = {
	...limits,
	...optional({
		expires_at: orNull(MomentGiven),
		project_id: orNull(Type.String({ maxLength: 64, description: "The key's project, of the same account." })),
	}),
};
const person = optional({
	user_id: Id,
	email: Type.String({ minLength: 3, maxLength: 320, description: "Instead of `user_id`." }),
});

export const MANAGEMENT_REQUESTS = {
	ManagementAccountCreate: exact({ email: text(320, 3), ...optional({ name: text(200, 1) }), ...token }),
	ManagementAccountUpdate: exact(
		optional({
			name: text(200, 1),
			state: Type.Union([Type.Literal("active"), Type.Literal("suspended")]),
			time_zone: Type.String({
				maxLength: 100,
				description: "Time zone in which cap periods begin: UTC, or an IANA name such as Europe/Berlin.",
			}),
			tags: Type.Array(text(40, 1), { maxItems: 20, description: "Replaces all tags." }),
			tokens_per_minute: orNull(
				Type.Integer({ minimum: 1, description: "Null: as `tollgate.yaml` sets for the account's tags." }),
			),
			reason: Reason,
		}),
	),
	ManagementKeyCreate: exact({
		account_id: Id,
		name: Name,
		...keySettings,
		...optional({
			reads_only: Type.Boolean({
				description: "The key can only read models, credit and usage of its account. Permanent.",
			}),
		}),
		...token,
	}),
	ManagementKeyUpdate: exact({ ...optional({ name: Name }), ...keySettings }),
	ManagementKeyRotate: exact({
		grace_seconds: Type.Integer({
			minimum: 0,
			maximum: 7_776_000,
			description: "Duration for which the old secret keeps working.",
		}),
		...token,
	}),
	ManagementKeyRevoke: exact({}),
	ManagementProjectCreate: exact({ name: Name, ...limits, ...token }),
	ManagementProjectUpdate: exact({ ...optional({ name: Name }), ...limits }),
	ManagementProjectArchive: exact({}),
	ManagementProjectMemberAdd: exact(person),
	ManagementProjectMemberRemove: exact({
		...person,
		...optional({
			keys: Type.Union([Type.Literal("keep"), Type.Literal("revoke")], {
				description:
					"Whether the keys that this member created in the project are kept or revoked. Required if there are any.",
			}),
		}),
	}),
	ManagementAdjustmentCreate: exact({
		account_id: Id,
		amount_usd: Type.String({
			pattern: "^-?\\d{1,9}(\\.\\d{1,9})?$",
			description: "US dollars as a decimal string, at most 100000, not zero. A negative amount removes credit.",
		}),
		reason: Reason,
		...optional({
			kind: Type.Union([Type.Literal("adjustment"), Type.Literal("promotion")], {
				description:
					"`promotion`: promotional credit, used before paid credit. It does not count as a top-up. Default: `adjustment`.",
			}),
			last_day: orNull(
				Type.String({
					maxLength: 10,
					description:
						"Of promotional credit: the last day in UTC, such as `2027-01-31`. Unspent credit is then removed.",
				}),
			),
		}),
		...token,
	}),
	ManagementPricesCreate: exact({
		reason: Reason,
		...optional({
			model: orNull(Type.String({ maxLength: 200, description: "Id of a model. Null or absent: every model." })),
			discount: Percent,
			rates: OwnRates,
			from: orNull(Type.String({ maxLength: 40, description: "Null or absent: at once; else ISO 8601 with a zone." })),
		}),
		...token,
	}),
};

export const InForceState = exact({
	effective: Type.Boolean({ description: "Whether all instances apply the change." }),
	elapsed_ms: Type.Number({ minimum: 0 }),
	effective_by: orNull(
		Type.String({ description: "ISO 8601: the latest time at which the change takes effect, if it has not yet." }),
	),
	pending_instances: Count,
	known: Type.Boolean({ description: "False: the database became unavailable, so the progress is unknown." }),
});
const secret = Type.Union([Type.String(), Type.Null()], {
	description:
		"Returned only by this response, and by repetitions with the same token. Null if the account has owners, who rotate the key in the console.",
});

const named = <Name extends string>(name: Name) => ({ object: Type.Literal(name) });
const Prices = exact({ model: orNull(Text), discount: Percent, rates: OwnRates, from: orNull(Moment) });
const account = {
	...named("account"),
	...fieldsAs(Text, "id", "email", "name"),
	state: oneOf("active", "suspended"),
	topped_up: Type.Boolean(),
	time_zone: Text,
	tags: Type.Array(Text),
	tokens_per_minute: orNull(Count),
	prices: Type.Array(Prices, { description: "Agreed prices, in force (`from` null if at once) and planned." }),
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
	models: orNull(Type.Array(Text)),
	...fieldsAs(orNull(Count), "requests_per_minute", "concurrency", "tokens_per_minute"),
};
const key = {
	...named("key"),
	...fieldsAs(Text, "id", "account_id", "name", "prefix", "last_four"),
	state: oneOf("active", "expired", "revoked"),
	...capped,
	expires_at: orNull(Moment),
	...fieldsAs(orNull(Text), "project_id", "replaced_by"),
	...fieldsAs(orNull(Moment), "last_used_at", "revoked_at"),
	created_at: Moment,
	reads_only: Type.Boolean(),
	etag: Etag,
};
const project = {
	...named("project"),
	...fieldsAs(Text, "id", "account_id", "name"),
	state: oneOf("active", "archived"),
	...capped,
	keys: Type.Integer({ minimum: 0, description: "Active keys." }),
	created_at: Moment,
	archived_at: orNull(Moment),
	etag: Etag,
};
const Account = exact(account);
const Key = exact(key);
const Project = exact(project);
const ProjectMember = exact({
	...named("project_member"),
	...fieldsAs(Text, "project_id", "user_id", "name", "email"),
	joined_at: Moment,
});
const adjustment = {
	...named("credit_adjustment"),
	...fieldsAs(Text, "id", "account_id", "reason"),
	kind: oneOf("adjustment", "promotion", "price"),
	last_day: orNull(Type.String({ format: "date" })),
	amount_usd: Usd,
	state: oneOf("pending", "booked", "rejected"),
	prices: orNull(Prices),
	asked_by: Type.String({ description: "The operator whose key requested it, or `cli`." }),
	created_at: Moment,
};
const Adjustment = exact(adjustment);
export const UsageDay = exact({
	...named("usage"),
	day: Type.String({ description: "A day in UTC: `2027-01-31`." }),
	...fieldsAs(Text, "account_id", "key_id", "model"),
	...fieldsAs(Count, "requests", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
	cost_usd: Usd,
});
export const Model = exact({
	...named("model"),
	...fieldsAs(Text, "id", "name", "kind", "rate_card"),
	...fieldsAs(Type.Array(Text), "aliases", "modes", "input_modalities", "output_modalities", "supported_parameters"),
	...fieldsAs(Count, "context_length", "max_output_tokens"),
	pricing: Type.Record(Type.String(), Type.String(), { description: "US dollars per single unit." }),
	expiration_date: orNull(Type.String({ format: "date" })),
	status: oneOf("connected", "unavailable"),
});
export const Deployment = exact({
	...named("deployment"),
	id: Type.String({ description: "Identifies the server; its address is not shown." }),
	...fieldsAs(Text, "model", "dialect"),
	health: oneOf("unknown", "up", "down"),
	breaker: oneOf("closed", "half_open", "open"),
	...fieldsAs(Count, "in_flight", "max_concurrency"),
	draining: Type.Boolean(),
});

const journal = {
	...named("journal"),
	id: Type.String({ description: "A closed month in UTC: `2027-01`." }),
	deferred_usd: Type.String({ description: "Unused credit at the month's end that was paid for." }),
	promotional_usd: Type.String({ description: "Unused promotional credit at the month's end." }),
	closed_at: Moment,
};

const list = <T extends ReturnType<typeof exact>>(data: T) =>
	exact({
		...named("list"),
		data: Type.Array(data),
		next: orNull(Type.String({ description: "The `after` of the next page; null: this is the last one." })),
		has_more: Type.Boolean(),
	});

export const MANAGEMENT_ANSWERS = {
	ManagementAccount: Account,
	ManagementAccountList: list(Account),
	ManagementAccountChanged: exact({ ...account, in_force: orNull(InForceState) }),
	ManagementCredit: exact({
		...named("credit"),
		account_id: Text,
		...fieldsAs(Usd, "balance_usd", "held_usd", "available_usd", "spent_usd", "promotional_usd"),
	}),
	ManagementKey: Key,
	ManagementKeyList: list(Key),
	ManagementKeyMade: exact({ ...key, secret }),
	ManagementKeyChanged: exact({ ...key, in_force: InForceState }),
	ManagementKeyRotated: exact({ ...key, secret, replaces: Text, in_force: InForceState }),
	ManagementProject: Project,
	ManagementProjectList: list(Project),
	ManagementProjectChanged: exact({ ...project, in_force: InForceState }),
	ManagementProjectMember: ProjectMember,
	ManagementProjectMemberList: list(ProjectMember),
	ManagementProjectMemberRemoved: exact({
		...named("project_member"),
		...fieldsAs(Text, "project_id", "user_id"),
		removed: Type.Literal(true),
		revoked_keys: Type.Array(Text),
		in_force: orNull(InForceState),
	}),
	ManagementAdjustment: Adjustment,
	ManagementAdjustmentList: list(Adjustment),
	ManagementPricesMade: exact({ ...adjustment, in_force: orNull(InForceState) }),
	ManagementUsageList: list(UsageDay),
	ManagementJournalList: list(exact(journal)),
	ManagementJournal: exact({
		...journal,
		lines: Type.Array(
			exact({
				entry: Count,
				...fieldsAs(Text, "account", "account_name", "description"),
				...fieldsAs(orNull(Text), "model", "debit_usd", "credit_usd"),
			}),
		),
	}),
	ManagementModelList: list(Model),
	ManagementDeploymentList: list(Deployment),
	ManagementCatalog: exact({
		...named("catalog"),
		digest: orNull(
			Type.String({ description: "Digest of the catalogue of the newest live gateway; null if none is live." }),
		),
		in_agreement: Type.Boolean({ description: "Whether all live gateways serve the same catalogue." }),
		models: Count,
		gateways: Type.Array(exact({ ...fieldsAs(Text, "instance_id", "digest"), models: Count, changed_at: Moment })),
	}),
	ManagementSelf: exact({
		...named("management_key"),
		...fieldsAs(Text, "id", "name"),
		scopes: Type.Array(oneOf(...MANAGEMENT_SCOPES)),
		expires_at: orNull(Moment),
		created_at: Moment,
	}),
};
