import { expect, test } from "bun:test";
import {
	type Admission,
	type AdmissionRequest,
	type Admitted,
	createAdmission,
} from "../../src/admission/admission.ts";
import { createOpenRequests } from "../../src/admission/open-requests.ts";
import { NO_QUANTITIES } from "../../src/admission/price.ts";
import type { Fault } from "../../src/base/fault.ts";
import { newUuid } from "../../src/base/id.ts";
import type { Model } from "../../src/catalog/model.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import {
	createAccountEntry,
	createKeyEntry,
	createProjectEntry,
	type KeyEntry,
	type ProjectEntry,
	type ProjectFields,
} from "../../src/keys/key-entry.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import type { Hold, Ledger } from "../../src/ledger/ledger.ts";
import type { BudgetShortage } from "../../src/ledger/slices.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import { type NanoUsd, nanoUsd } from "../../src/money/nano-usd.ts";
import { outcome } from "../ledger/fixture.ts";
import { plainAccountFields } from "../support/plain-key.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const model = (output: number) => {
	const rates = { input: 0, cachedInput: 0, output, request: 0, image: 0, audioSecond: 0, search: 0 };
	return { id: "m", rateCard: { id: "m@1", version: 1, ...rates } } as unknown as Model;
};

function setUp(fields: Partial<KeyEntry> = {}, ofProject: Partial<ProjectFields> | null = null) {
	const account = createAccountEntry("acc_1", plainAccountFields);
	const project = ofProject && createProjectEntry("proj_1", { ...UNLIMITED, ...ofProject });
	const newKey = (id: string) => {
		const own = { id, accountId: "acc_1", readsOnly: false, expiresAtMs: null, projectId: project?.id ?? null };
		return createKeyEntry({ ...UNLIMITED, ...own }, account, project);
	};
	const key = newKey("key_1");
	const sister = newKey("key_2");
	Object.assign(key, fields);
	const clock = createManualClock();
	const state = {
		open: true,
		limits: DEFAULT_LIMITS,
		free: 1_000,
		reserved: [] as NanoUsd[],
		drawnOn: [] as (readonly string[] | undefined)[],
		whileDrawn: (): BudgetShortage | null => null,
	};
	const ledger = {
		reserve({ budgets, reserved }: AdmittedEvent): Hold | undefined {
			if (state.free < reserved) return undefined;
			state.drawnOn.push(budgets);
			state.free -= reserved;
			state.reserved.push(reserved);
			return { ledger } as unknown as Hold;
		},
		draw: async () => state.whileDrawn(),
		heldOf: () => nanoUsd(0),
		settle: () => ({}),
	} as unknown as Ledger;
	const admission = createAdmission({
		ledger: () => (state.open ? ledger : undefined),
		closedReason: () => "closed",
		keyLimits: createKeyLimits({ clock }),
		limits: () => state.limits,
		openRequests: createOpenRequests({ limits: () => state.limits }),
		clock,
		onSettled: () => {},
	});
	const request = (completion = 10, output = 1_000, by = key): AdmissionRequest => ({
		id: newUuid(),
		key: by,
		model: model(output),
		endpoint: "chat",
		streamed: false,
		upperBound: { ...NO_QUANTITIES, completionTokens: completion },
		choices: 1,
		isAgain: false,
	});
	return { admission, state, key, sister, project, request, clock };
}

/** Fields that a project has in common with a key. */
const UNLIMITED = {
	...({ name: "n", state: "active", capNanoUsd: null, capPeriod: "lifetime", models: null } as const),
	...{ requestsPerMinute: null, concurrencyMax: null, tokensPerMinute: null },
};
const SHORT: BudgetShortage = {
	budget: "acc_1",
	needNanoUsd: nanoUsd(10),
	availableNanoUsd: nanoUsd(0),
	untimely: false,
};
const toNoon = (clock: ReturnType<typeof createManualClock>) => {
	const DAY_MS = 86_400_000;
	clock.advance(1.5 * DAY_MS - (clock.wallMs() % DAY_MS));
};
const refusalOf = (run: () => unknown): Promise<Partial<Fault>> =>
	Promise.try(run).then(
		() => ({}),
		(error) => error,
	);
const codeOf = async (run: () => unknown) => (await refusalOf(run)).code ?? "admitted";
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

test("admission refuses a key that loses a right while credit is drawn for its request", async () => {
	const changes: Record<string, (world: ReturnType<typeof setUp>) => void> = {
		api_key_revoked: ({ key }) => (key.state = "revoked"),
		account_suspended: ({ key }) => (key.account.state = "suspended"),
		model_not_found: ({ key }) => (key.account.tags = []),
		model_not_allowed: ({ key }) => (key.models = new Set(["another"])),
		service_unavailable: ({ state }) => (state.open = false),
	};
	for (const [code, change] of Object.entries(changes)) {
		const world = setUp();
		world.key.account.tags = ["pilot"];
		world.state.free = 0;
		world.state.whileDrawn = () => {
			world.state.free = 1_000;
			change(world);
			return null;
		};
		const asked = world.request();
		const request = { ...asked, model: { ...asked.model, visibleTo: ["pilot"] } };
		expect(await codeOf(() => world.admission.admit(request))).toBe(code);
		expect(world.state.reserved).toEqual([]);
	}
});

test("admission refuses a key that is revoked between its check and the reservation", async () => {
	const { admission, key, request, state } = setUp();
	admission.check(key);
	key.state = "revoked";
	expect(await codeOf(() => admission.admit(request()))).toBe("api_key_revoked");
	expect(state.reserved).toEqual([]);
});

test("a 402 error names the new day's cap if the day ends while credit is drawn", async () => {
	const { admission, request, state, clock } = setUp({ capNanoUsd: nanoUsd(1_000), capPeriod: "day" });
	const lacking = (day: string): BudgetShortage => ({ ...SHORT, budget: `key_1:day:${day}` });
	const midnight = (Math.floor(clock.wallMs() / 86_400_000) + 1) * 86_400_000;
	const days = [midnight - 1, midnight].map(dayOf);
	state.free = 0;
	let draws = 0;
	state.whileDrawn = () => {
		draws += 1;
		if (draws === 1) clock.advance(midnight - clock.wallMs());
		return lacking(days[draws === 1 ? 0 : 1] as string);
	};
	const message = expect.stringContaining(`renews at ${new Date(midnight + 86_400_000).toISOString()}`);
	expect(await refusalOf(() => admission.admit(request()))).toMatchObject({ code: "key_cap_exceeded", message });
	expect(draws).toBe(2);
});

test("admission waits until the instance learns a cap change that Postgres has applied", async () => {
	const { admission, request, state, clock, key } = setUp({ capNanoUsd: nanoUsd(1_000), capPeriod: "day" });
	toNoon(clock);
	const today = () => `key_1:day:${dayOf(clock.wallMs())}`;
	let draws = 0;
	state.free = 0;
	state.whileDrawn = () => {
		draws += 1;
		return { ...SHORT, budget: today(), untimely: true };
	};
	const pass = async (ms: number) => {
		for (let waited = 0; waited < ms; waited += 20) {
			clock.advance(20);
			await Bun.sleep(0);
		}
	};
	const lifted = codeOf(() => admission.admit(request()));
	await pass(300);
	expect(draws).toBe(1);
	key.capNanoUsd = null;
	state.free = 1_000;
	clock.advance(20);
	expect(await lifted).toBe("admitted");

	// The clock is never corrected, so the request fails after a second.
	Object.assign(key, { capNanoUsd: nanoUsd(1_000), period: null });
	state.free = 0;
	const astray = codeOf(() => admission.admit(request()));
	await pass(1_100);
	expect(await astray).toBe("service_unavailable");
	expect(draws).toBe(2);
});

test("admission uses yesterday's cap until the next day begins by the database's clock", async () => {
	const { admission, request, state, clock } = setUp({ capNanoUsd: nanoUsd(1_000), capPeriod: "day" });
	toNoon(clock);
	clock.advance(13 * 3_600_000);
	const budgetOf = (agoMs: number) => `key_1:day:${dayOf(clock.wallMs() - agoMs)}`;
	const [today, before] = [budgetOf(0), budgetOf(86_400_000)];
	let draws = 0;
	state.free = 0;
	state.whileDrawn = () => {
		draws += 1;
		state.free = 1_000;
		return { ...SHORT, budget: today, untimely: true };
	};
	for (const waitedMs of [0, 59_000]) {
		clock.advance(waitedMs);
		expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
		expect(state.drawnOn.at(-1)).toEqual([before]);
	}
	expect(draws).toBe(1);
	clock.advance(1_000);
	expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
	expect(state.drawnOn.at(-1)).toEqual([today]);
});

test("admission lets at most a thousand requests wait for a cap change", async () => {
	const { admission, key, request, state, clock } = setUp({ capNanoUsd: nanoUsd(1_000), capPeriod: "day" });
	toNoon(clock);
	const today = `key_1:day:${dayOf(clock.wallMs())}`;
	state.free = 0;
	state.whileDrawn = () => ({ ...SHORT, budget: today, untimely: true });
	const waiting = Array.from({ length: 1_000 }, () => codeOf(() => admission.admit(request())));
	await Bun.sleep(0);
	expect(await codeOf(() => admission.admit(request()))).toBe("service_unavailable");
	clock.advance(20);
	await Bun.sleep(0);
	key.capNanoUsd = null;
	state.free = 1_000_000;
	clock.advance(20);
	expect(new Set(await Promise.all(waiting))).toEqual(new Set(["admitted"]));
});

test.each(["key", "project"])(
	"a request refused for lack of credit does not count against its %s's limits",
	async (holder) => {
		const limits = { requestsPerMinute: 1, concurrencyMax: 1 };
		const { admission, request, state } = holder === "key" ? setUp(limits) : setUp({}, limits);
		state.free = 0;
		state.whileDrawn = () => SHORT;
		for (let tried = 0; tried < 3; tried++)
			expect(await codeOf(() => admission.admit(request()))).toBe("insufficient_quota");
		state.free = 1_000;
		expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
		expect(await codeOf(() => admission.admit(request()))).toBe("rate_limit_exceeded");
	},
);

test("the concurrency limit of an account refuses requests, but no batch lines", async () => {
	const { admission, request, state, key } = setUp();
	state.limits = { ...DEFAULT_LIMITS, openRequestsMax: 2, accountShare: 0.5 };
	const first = (await admission.admit(request())) as Admitted;
	expect(await codeOf(() => admission.check(key))).toBe("rate_limit_exceeded");
	expect(await codeOf(() => admission.admit(request()))).toBe("rate_limit_exceeded");
	expect(await codeOf(() => admission.admit({ ...request(), batchId: "batch_1" }))).toBe("admitted");
	admission.settle(first, outcome(1));
	expect(await codeOf(() => admission.check(key))).toBe("rate_limit_exceeded");
});

test("admission refuses a free request of an account without credit", async () => {
	const { admission, request, state } = setUp();
	await admission.admit(request(10, 0));
	expect(state.reserved).toEqual([nanoUsd(1)]);
	state.free = 0;
	state.whileDrawn = () => SHORT;
	expect(await codeOf(() => admission.admit(request(10, 0)))).toBe("insufficient_quota");
});

test("admission answers `overloaded` if other requests took the credit of 64 draws", async () => {
	const { admission, request, state } = setUp();
	state.free = 0;
	let draws = 0;
	state.whileDrawn = () => {
		draws += 1;
		return null;
	};
	expect(await codeOf(() => admission.admit(request()))).toBe("overloaded");
	expect(draws).toBe(64);
});

test("admission draws on the project, the project's cap period, the key's cap period", () => {
	const { admission, request, state, key, project, clock } = setUp(
		{ capNanoUsd: nanoUsd(1_000), capPeriod: "month" },
		{ capNanoUsd: nanoUsd(1_000), capPeriod: "day" },
	);
	const day = dayOf(clock.wallMs());
	const admit = () => void admission.admit(request());
	admit();
	key.capPeriod = "lifetime";
	admit();
	Object.assign(project as ProjectEntry, { capNanoUsd: null });
	admit();
	expect(state.drawnOn).toEqual([
		["proj_1", `proj_1:day:${day}`, `key_1:month:${day.slice(0, 8)}01`],
		["proj_1", `proj_1:day:${day}`],
		["proj_1"],
	]);
});

test("a 402 error names the budget that lacks credit and when its cap renews", async () => {
	const { admission, request, state, clock } = setUp(
		{ capNanoUsd: nanoUsd(1_000), capPeriod: "day" },
		{ capNanoUsd: nanoUsd(1_000), capPeriod: "month" },
	);
	const day = dayOf(clock.wallMs());
	const month = day.slice(0, 7);
	state.free = 0;
	const refusal = async (budget: string) => {
		state.whileDrawn = () => ({ ...SHORT, budget });
		const { code, message = "" } = await refusalOf(() => admission.admit(request()));
		return [code, /renews at (.*)\.$/.exec(message)?.[1]?.slice(0, 10)];
	};
	const next = dayOf(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 1));
	const tomorrow = dayOf(Date.parse(day) + 86_400_000);
	expect(await refusal("acc_1")).toEqual(["insufficient_quota", undefined]);
	expect(await refusal("proj_1")).toEqual(["project_cap_exceeded", undefined]);
	expect(await refusal(`proj_1:month:${month}-01`)).toEqual(["project_cap_exceeded", next]);
	expect(await refusal("key_1")).toEqual(["key_cap_exceeded", undefined]);
	expect(await refusal(`key_1:day:${day}`)).toEqual(["key_cap_exceeded", tomorrow]);
});

test("admission applies a project's models and archival to the project's keys", async () => {
	const { admission, request, project, key, state } = setUp({ models: new Set(["m"]) }, { models: ["m"] });
	expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
	Object.assign(project as ProjectEntry, { models: new Set(["another"]) });
	const message = expect.stringContaining("project");
	const refused = { code: "model_not_allowed", param: "model", message };
	expect(await refusalOf(() => admission.admit(request()))).toMatchObject(refused);
	Object.assign(project as ProjectEntry, { models: null, state: "archived" });
	expect(await codeOf(() => admission.admit(request()))).toBe("project_archived");
	expect(await codeOf(() => admission.check(key))).toBe("project_archived");
	expect(state.reserved).toHaveLength(1);
});

function limitState(admission: Admission, key: KeyEntry, model?: Model, kind: "rate" | "tokens" = "rate") {
	return admission.rateLimitState(key, admission.othersOf(key, model), kind);
}

test("admission counts all keys of a project against the project's limits", async () => {
	for (const limit of [{ concurrencyMax: 2 }, { requestsPerMinute: 2 }]) {
		const { admission, request, sister, key, project } = setUp({ requestsPerMinute: 100 }, limit);
		const first = await admission.admit(request());
		await admission.admit(request(10, 1_000, sister));
		for (const by of [key, sister]) {
			const message = expect.stringContaining("The project of this key");
			const refused = await refusalOf(() => admission.admit(request(10, 1_000, by)));
			expect(refused).toMatchObject({ code: "rate_limit_exceeded", message });
			expect(await codeOf(() => admission.check(by))).toBe("rate_limit_exceeded");
		}
		const own = Number(admission.rateLimitState(key, [], "rate")?.remaining);
		expect(own).toBe(99);
		expect(limitState(admission, key)?.remaining).toBe("requestsPerMinute" in limit ? 0 : 99);
		admission.settle(first, outcome(1));
		if ("concurrencyMax" in limit) expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
		Object.assign(project as ProjectEntry, { requestsPerMinute: null, concurrencyMax: null });
		expect(await codeOf(() => admission.admit(request()))).toBe("admitted");
	}
});

test.each(["key", "project", "account", "tag", "model"] as const)(
	"the token limit of a request's %s counts its tokens and takes unused ones back",
	async (holder) => {
		const { admission, request, key, project, state } = setUp({}, {});
		const limit = { requestsPerMinute: null, concurrencyMax: null, tokensPerMinute: 100 };
		if (holder === "key") Object.assign(key, limit);
		if (holder === "project") Object.assign(project as ProjectEntry, limit);
		if (holder === "account") key.account.tokensPerMinute = 100;
		key.account.tags = ["small", "large"];
		if (holder === "tag") state.limits = { ...DEFAULT_LIMITS, accounts: [{ ...limit, tag: "large" }] };
		const asked = (prompt: number, completion: number) => {
			const made = request(completion, 0);
			const model = { ...made.model, ...(holder === "model" ? { tokensPerMinute: 100 } : {}) };
			return { ...made, model, upperBound: { ...made.upperBound, promptTokens: prompt } };
		};
		const remaining = () => limitState(admission, key, asked(1, 1).model, "tokens")?.remaining;
		const first = (await admission.admit(asked(20, 50))) as Admitted;
		expect(remaining()).toBe(30);
		const refused = await refusalOf(() => admission.admit(asked(0, 31)));
		const named = { key: "This key", project: "The project of this key", model: "This account with this model" };
		const who = named[holder as keyof typeof named] ?? "This account";
		expect(refused).toMatchObject({
			code: "rate_limit_exceeded",
			message: `${who} is limited to 100 tokens per minute. Retry later.`,
		});
		state.free = 0;
		state.whileDrawn = () => SHORT;
		expect(await codeOf(() => admission.admit(asked(5, 5)))).toBe("insufficient_quota");
		state.free = 1_000;
		expect(remaining()).toBe(30);
		expect(await codeOf(() => admission.admit({ ...asked(0, 31), batchId: "batch_1" }))).toBe("admitted");
		admission.settle(first, { ...outcome(1), promptTokens: 10, completionTokens: 5 });
		expect(remaining()).toBe(85);
		expect(await codeOf(() => admission.admit(asked(40, 45)))).toBe("admitted");
		expect(await codeOf(() => admission.check(key))).toBe(holder === "model" ? "admitted" : "rate_limit_exceeded");
	},
);

test.each(["project", "account", "model"] as const)(
	"a request that the token limit of its %s refuses uses up no other token limit",
	async (refuses) => {
		const { admission, request, key, project } = setUp({ tokensPerMinute: 100 }, { tokensPerMinute: 100 });
		const asked = request(20, 0);
		const model = { ...asked.model, tokensPerMinute: 100 };
		key.account.tokensPerMinute = 100;
		const holder = { project: project as ProjectEntry, account: key.account, model }[refuses];
		Object.assign(holder, { tokensPerMinute: 10 });
		expect(await codeOf(() => admission.admit({ ...asked, model }))).toBe("rate_limit_exceeded");
		Object.assign(holder, { tokensPerMinute: 100 });
		expect(limitState(admission, key, model, "tokens")?.remaining).toBe(100);
	},
);

test("an account gets the limits of its first matching tag, and its own token limit", async () => {
	const { admission, key, state } = setUp();
	const entry = (tag: string | null, tokens: number) =>
		({ tag, requestsPerMinute: 7, concurrencyMax: null, tokensPerMinute: tokens }) as const;
	state.limits = { ...DEFAULT_LIMITS, accounts: [entry("large", 900), entry("small", 90), entry(null, 9)] };
	const limitsNow = () =>
		(["rate", "tokens"] as const).map((kind) => limitState(admission, key, undefined, kind)?.limit);
	expect(limitsNow()).toEqual([7, 9]);
	key.account.tags = ["small"];
	expect(limitsNow()).toEqual([7, 90]);
	key.account.tags = ["small", "large"];
	expect(limitsNow()).toEqual([7, 900]);
	key.account.tokensPerMinute = 5;
	expect(limitsNow()).toEqual([7, 5]);
	state.limits = DEFAULT_LIMITS;
	expect(limitsNow()).toEqual([undefined, 5]);
});
