import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import type { Membership, Viewer } from "./viewer.ts";

const AUTHENTICATED_FOR_MS = 15 * 60_000;

/** One request to the console: who asks, established before anything of its body was read. */
export interface Visit {
	readonly requestId: string;
	readonly connection: Connection;
	/** Null on public routes. */
	readonly viewer: Viewer | null;
	/** The account that `?account=` names, else the viewer's first; null if the viewer has none. */
	readonly membership: Membership | null;
}

/**
 * Rights are asked for by the handler itself, at its first line: a hook could be skipped, a handler that has no account
 * id has nothing to ask the database for.
 */
export interface Visits {
	open(request: Request, visit: Visit): void;
	of(request: Request): Visit;
	viewer(request: Request): Viewer;
	/** The account that the visit is about. Fault not_found if there is none. */
	account(request: Request): { viewer: Viewer; accountId: string; role: Membership["role"] };
	/** As `account`, for what only its owners may do. Fault forbidden. */
	owner(request: Request): { viewer: Viewer; accountId: string };
	/** Faults forbidden, second_factor_required. */
	operator(request: Request): Viewer;
	/**
	 * Before what a stolen session must not do: the password was given within the last quarter of an hour. Fault
	 * reauthentication_required.
	 */
	authenticatedLately(request: Request): void;
	isAuthenticatedLately(request: Request): boolean;
	/** Fault reauthentication_required. */
	passwordWanted(): Fault;
}

/**
 * `secondFactor`: whether operators must have one set up. `passwordAgain`: false in the demo, whose people sign in by a
 * link and have none.
 */
export function createVisits(options: { secondFactor: boolean; passwordAgain: boolean }): Visits {
	const visits = new WeakMap<Request, Visit>();

	function of(request: Request): Visit {
		const visit = visits.get(request);
		assert(visit !== undefined, "every request of the console is opened before it is routed");
		return visit;
	}

	function viewer(request: Request): Viewer {
		const found = of(request).viewer;
		if (found === null) throw sessionRequired();
		return found;
	}

	function account(request: Request) {
		const who = viewer(request);
		const { membership } = of(request);
		if (membership === null) throw new Fault("not_found", "You are not a member of any account.");
		return { viewer: who, accountId: membership.accountId, role: membership.role };
	}

	const isAuthenticatedLately = (request: Request) =>
		!options.passwordAgain || viewer(request).authenticatedAgoMs <= AUTHENTICATED_FOR_MS;
	const passwordWanted = () => new Fault("reauthentication_required", "Please give your password again for this.");

	return {
		open: (request, visit) => void visits.set(request, visit),
		of,
		viewer,
		account,
		owner(request) {
			const found = account(request);
			if (found.role !== "owner") throw new Fault("forbidden", "Only an owner of the account may do this.");
			return found;
		},
		operator(request) {
			const who = viewer(request);
			if (!who.operator) throw new Fault("forbidden", "This page is for operators of the service.");
			if (options.secondFactor && !who.twoFactorEnabled)
				throw new Fault(
					"second_factor_required",
					"Operators sign in with a second factor: set it up in your settings.",
				);
			return who;
		},
		authenticatedLately(request) {
			if (!isAuthenticatedLately(request)) throw passwordWanted();
		},
		isAuthenticatedLately,
		passwordWanted,
	};
}

export function sessionRequired(): Fault {
	return new Fault("session_required", "Please sign in.");
}
