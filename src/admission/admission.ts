import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { limitsOfAccount } from "../catalog/account-limits.ts";
import type { Model } from "../catalog/model.ts";
import type { Endpoint } from "../catalog/request-fields.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";
import { checkAccess, checkModel } from "../keys/access.ts";
import { extraBudgets, keepPreviousPeriod, keyPeriod, projectPeriod } from "../keys/cap-budgets.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { SettledEvent } from "../ledger/event.ts";
import type { Hold, Ledger } from "../ledger/ledger.ts";
import type { Outcome } from "../ledger/outcome.ts";
import type { BudgetShortage } from "../ledger/slices.ts";
import type { KeyLimits, RateLimitState, RequestLimits } from "../limits/key-limits.ts";
import { affordableUnits, type NanoUsd, nanoUsd } from "../money/nano-usd.ts";
import { CreditFault } from "./credit-fault.ts";
import type { OpenRequests } from "./open-requests.ts";
import { maxCost, maxCostLines, type Quantities } from "./price.ts";

export interface AdmissionRequest {
	readonly id: string;
	readonly key: KeyEntry;
	readonly model: Model;
	readonly endpoint: Endpoint;
	readonly streamed: boolean;
	readonly upperBound: Quantities;
	/** Number of choices (`n`). They share the prompt; `upperBound.completionTokens` is the sum over all choices. */
	readonly choices: number;
	/** True if the request was already admitted for an earlier model of its route: only token limits can refuse it. */
	readonly isAgain: boolean;
	/** Batch of which this request is a line. The key's request limits do not apply to lines. */
	readonly batchId?: string | undefined;
}

/** An admitted request. The caller must `settle` it exactly once. */
export interface Admitted {
	readonly hold: Hold;
	readonly request: AdmissionRequest;
	/** Project, account and model whose limits count this request, in addition to the key's. */
	readonly others: readonly Limited[];
	/** Monotonic time at which the limits counted this request. */
	readonly enteredMs: number;
}

/** An owner of limits: a key, a project, an account, or an account together with a model. */
type Limited = RequestLimits & { readonly id: string };

const NO_OTHERS: readonly Limited[] = [];

export type Admission = ReturnType<typeof createAdmission>;

/** Maximum draws per request. Other requests took the credit of an insufficient draw; so many indicate a bug. */
const DRAWS_MAX = 64;
/** Longest wait of a request for a changed cap, followed by the interval of checks and the most waiting requests. */
const CAP_NEWS_MS_MAX = 1_000;
const CAP_LOOK_MS = 20;
const CAP_WAITERS_MAX = 1_000;

export function createAdmission(deps: {
	/** The ledger from which to reserve; undefined while this instance may not admit. */
	ledger(): Ledger | undefined;
	/** Why this instance may not admit, for the private part of the fault. */
	closedReason(): string | undefined;
	keyLimits: KeyLimits;
	/** Limits of accounts, chosen by the account's tags. */
	limits(): Pick<ServiceLimits, "accounts">;
	openRequests: OpenRequests;
	clock: Clock;
	onSettled(event: SettledEvent): void;
}) {
	const { keyLimits, openRequests, clock } = deps;
	let waitingForCaps = 0;

	function openLedger(): Ledger {
		const ledger = deps.ledger();
		if (ledger) return ledger;
		throw new Fault("service_unavailable", "The service is not ready to admit requests.", {
			retryAfterS: 1,
			private: deps.closedReason() ?? "no ledger",
		});
	}

	/**
	 * Contains no `await`, so that what was checked still holds when credit is reserved. Returns null if this instance's
	 * share of a limit is used up, and the ledger if this instance's credit is.
	 */
	function attempt(request: AdmissionRequest, amount: NanoUsd): Admitted | Ledger | null {
		const { key, model } = request;
		const ledger = openLedger();
		const nowMs = clock.wallMs();
		checkAccess(key, nowMs);
		checkModel(key, model);
		const limited = request.batchId === undefined;
		if (limited) openRequests.check(key.accountId);
		const others = limited ? othersOf(key, model) : NO_OTHERS;
		if (limited && !enterLimits(request, others)) return null;
		let hold: Hold | undefined;
		try {
			hold = ledger.reserve({
				id: request.id,
				account: key.accountId,
				key: key.id,
				model: model.id,
				card: model.rateCard.id,
				endpoint: request.endpoint,
				streamed: request.streamed,
				reserved: amount,
				at: nowMs,
				budgets: extraBudgets(key, nowMs),
				batch: request.batchId,
			});
		} finally {
			if (!hold && limited) withdrawLimits(request, others);
		}
		if (!hold) return ledger;
		openRequests.add(key.accountId, 1);
		return { hold, request, others, enteredMs: clock.monotonicMs() };
	}

	/** Returns project, account and model with limits: for most requests a shared empty list, without an allocation. */
	function othersOf({ project, account }: KeyEntry, model: Model | undefined): readonly Limited[] {
		const ofAccount = limitsOfAccount(deps.limits().accounts, account);
		const ofModel = model?.tokensPerMinute;
		if (project === null && ofAccount === null && ofModel === undefined) return NO_OTHERS;
		const others: Limited[] = project === null ? [] : [project];
		if (ofAccount !== null) others.push({ ...ofAccount, id: account.id });
		if (ofModel !== undefined)
			others.push({ ...ONLY_TOKENS, id: `${account.id} ${model?.id}`, tokensPerMinute: ofModel });
		return others;
	}

	/** Counts the request in all limits or in none. Returns false if this instance's share of one limit is used up. */
	function enterLimits(request: AdmissionRequest, others: readonly Limited[]): boolean {
		const { key, isAgain } = request;
		const tokens = tokensOf(request.upperBound);
		if (!keyLimits.enter(key.id, key, tokens, isAgain)) return false;
		let entered = 0;
		try {
			while (entered < others.length && enterOne(others[entered], tokens, isAgain)) entered += 1;
		} finally {
			if (entered < others.length) withdrawLimits(request, others.slice(0, entered));
		}
		return entered === others.length;
	}

	const enterOne = (limited: Limited | undefined, tokens: number, isAgain: boolean) =>
		limited !== undefined && keyLimits.enter(limited.id, limited, tokens, isAgain);

	function withdrawLimits({ key, upperBound }: AdmissionRequest, others: readonly Limited[]): void {
		const tokens = tokensOf(upperBound);
		keyLimits.withdraw(key.id, tokens);
		for (const { id } of others) keyLimits.withdraw(id, tokens);
	}

	function standingOf(limited: Limited, kind: "rate" | "tokens"): RateLimitState | null {
		const limit = kind === "rate" ? limited.requestsPerMinute : limited.tokensPerMinute;
		return limit === null ? null : keyLimits.rateLimitState(limited.id, kind, limit);
	}

	async function drawLimits({ key, model, upperBound }: AdmissionRequest): Promise<void> {
		const tokens = tokensOf(upperBound);
		for (const limited of [key, ...othersOf(key, model)]) await keyLimits.draw(limited.id, limited, tokens);
	}

	const drawingOf = (key: KeyEntry) => ({
		account: key.accountId,
		key: key.id,
		budgets: extraBudgets(key, clock.wallMs()),
	});

	/** False if the budget is a past period of a cap, so that its shortage does not refuse the request. */
	function isDrawnOn(key: KeyEntry, budget: string): boolean {
		const { account, key: own, budgets } = drawingOf(key);
		return budget === account || budget === own || (budgets?.includes(budget) ?? false);
	}

	/**
	 * Waits for a changed cap: the database grants nothing for this period, because the cap has another one now. The
	 * control log delivers the change within milliseconds, unless a clock is wrong.
	 */
	async function awaitCapNews(key: KeyEntry, period: string): Promise<void> {
		const untilMs = clock.monotonicMs() + CAP_NEWS_MS_MAX;
		waitingForCaps += 1;
		try {
			while (isDrawnOn(key, period)) {
				if (clock.monotonicMs() >= untilMs || waitingForCaps > CAP_WAITERS_MAX) {
					throw new Fault("service_unavailable", "Credit cannot be reserved right now. Please try again.", {
						retryAfterS: 1,
						private: `${period} is not a period of a cap now, by the database`,
					});
				}
				await sleep(clock, CAP_LOOK_MS);
			}
		} finally {
			waitingForCaps -= 1;
		}
	}

	async function drawAndAdmit(request: AdmissionRequest, amount: NanoUsd, first: Ledger | null): Promise<Admitted> {
		const { key } = request;
		let lacking = first;
		for (let draw = 0; draw < DRAWS_MAX; draw++) {
			let shortage: BudgetShortage | null = null;
			if (lacking === null) await drawLimits(request);
			else shortage = await lacking.draw(drawingOf(key), amount);
			if (shortage?.untimely && !keepPreviousPeriod(key, shortage.budget, clock.wallMs()))
				await awaitCapNews(key, shortage.budget);
			const outcome = attempt(request, amount);
			if (outcome !== null && "hold" in outcome) return outcome;
			if (shortage && outcome !== null && isDrawnOn(key, shortage.budget))
				throw creditFault(request, amount, shortage, outcome, clock.wallMs());
			lacking = outcome;
		}
		throw new Fault("overloaded", "Too many requests compete for the credit of this account.", { retryAfterS: 1 });
	}

	return {
		/** Throws Fault service_unavailable while this instance may not admit, because its keys may then be outdated. */
		checkOpen: () => void openLedger(),
		/** Throws what `admit` would throw for any request with this key, so that no body is read. Reserves nothing. */
		check(key: KeyEntry, isLine = false) {
			openLedger();
			checkAccess(key, clock.wallMs());
			if (isLine) return;
			openRequests.check(key.accountId);
			keyLimits.check(key.id, key);
			for (const limited of othersOf(key, undefined)) keyLimits.check(limited.id, limited);
		},
		/**
		 * Checks key, account, project, allowed models, limits, credit and caps in one synchronous block. Returns a promise
		 * only if credit or a share of a limit must be drawn; then the whole block runs again.
		 */
		admit(request: AdmissionRequest): Admitted | Promise<Admitted> {
			const amount = maxCost(request.model.rateCard, request.upperBound);
			if (amount === undefined) {
				throw new Fault(
					"invalid_request",
					"The request could cost more than any account can hold. Lower `max_tokens` or `n`.",
					{ param: "max_tokens" },
				);
			}
			// A request that costs nothing reserves one nano-dollar, so that its account must have some credit.
			const reserved = amount > 0 ? amount : nanoUsd(1);
			const outcome = attempt(request, reserved);
			return outcome !== null && "hold" in outcome ? outcome : drawAndAdmit(request, reserved, outcome);
		},
		othersOf,
		/** The limit per minute (`kind`) of key or `others` that is closest to being reached; null: none. */
		rateLimitState(key: KeyEntry, others: readonly Limited[], kind: "rate" | "tokens"): RateLimitState | null {
			let closest = standingOf(key, kind);
			for (const limited of others) {
				const standing = standingOf(limited, kind);
				if (closest === null || (standing !== null && standing.remaining < closest.remaining)) closest = standing;
			}
			return closest;
		},
		/** Ends the request. Returns what was charged, which may be less than the cost. */
		settle({ hold, request, others, enteredMs }: Admitted, outcome: Outcome): SettledEvent {
			const { key, upperBound, batchId } = request;
			if (batchId === undefined) {
				const spare = tokensOf(upperBound) - outcome.promptTokens - outcome.completionTokens;
				keyLimits.leave(key.id, spare, enteredMs);
				for (const { id } of others) keyLimits.leave(id, spare, enteredMs);
			}
			openRequests.giveBack(key.accountId);
			const event = hold.ledger.settle(hold, outcome);
			deps.onSettled(event);
			return event;
		},
	};
}

const ONLY_TOKENS = { requestsPerMinute: null, concurrencyMax: null };

const tokensOf = ({ promptTokens, completionTokens }: Quantities) => promptTokens + completionTokens;

/** Builds a 402 with the available, held and required amounts, and the largest `max_tokens` that credit covers. */
function creditFault(
	request: AdmissionRequest,
	required: NanoUsd,
	shortage: BudgetShortage,
	ledger: Ledger,
	nowMs: number,
): CreditFault {
	const { upperBound, choices, model, key } = request;
	const { budget, availableNanoUsd } = shortage;
	const { project } = key;
	const prompt = maxCostLines(model.rateCard, { ...upperBound, completionTokens: 0 });
	const tokens = Math.min(
		affordableUnits(availableNanoUsd, prompt, model.rateCard.output),
		upperBound.completionTokens,
	);
	const perChoice = Math.floor(tokens / choices);
	const ofProject = project === null ? undefined : projectPeriod(key, project, nowMs);
	const isOfProject = budget === project?.id || (ofProject?.budgets.includes(budget) ?? false);
	const period = isOfProject ? ofProject : keyPeriod(key, nowMs);
	return new CreditFault(
		budget === key.accountId ? "insufficient_quota" : isOfProject ? "project_cap_exceeded" : "key_cap_exceeded",
		{
			availableNanoUsd,
			heldNanoUsd: ledger.heldOf(budget),
			requiredNanoUsd: required,
			affordableMaxTokens: perChoice > 0 ? perChoice : null,
		},
		period?.budgets.includes(budget) ? period.untilMs : null,
	);
}
