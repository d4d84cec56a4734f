import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { useMemo, useSyncExternalStore } from "react";

/** Routing over the browser's history, without a library: a path, its query, and links that do not reload. */

const CHANGED = "tollgate:navigated";

export interface Place {
	readonly path: string;
	readonly query: URLSearchParams;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
	const before = location.pathname;
	if (options.replace) history.replaceState(null, "", to);
	else history.pushState(null, "", to);
	// A change of the query alone (a filter) leaves the reader where he is.
	if (location.pathname !== before) scrollTo(0, 0);
	dispatchEvent(new Event(CHANGED));
}

export function usePlace(): Place {
	const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
	return useMemo(() => {
		const url = new URL(href, "http://page");
		return { path: url.pathname, query: url.searchParams };
	}, [href]);
}

/** The query as an object and a way to change some of it; null or "" removes. Filters that live in the address. */
export function useQueryState(): [URLSearchParams, (changes: Record<string, string | null>) => void] {
	const { query } = usePlace();
	return [query, changeQuery];
}

function changeQuery(changes: Record<string, string | null>): void {
	const url = new URL(location.href);
	for (const [name, value] of Object.entries(changes)) {
		if (value === null || value === "") url.searchParams.delete(name);
		else url.searchParams.set(name, value);
	}
	navigate(url.pathname + url.search, { replace: true });
}

export interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
	to: string;
	children?: ReactNode;
}

/** A real anchor: middle click, copy address and screen readers work as anywhere. */
export function Link({ to, onClick, ...rest }: LinkProps) {
	function follow(event: MouseEvent<HTMLAnchorElement>) {
		onClick?.(event);
		const own = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
		if (event.defaultPrevented || own || rest.target) return;
		event.preventDefault();
		navigate(to);
	}
	return <a href={to} onClick={follow} {...rest} />;
}

/**
 * Matches `/keys/:id` and `/models/*` (the rest of the path, decoded, slashes included). Gives the parameters, or
 * undefined if the path is another one.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
	const wanted = pattern.split("/");
	const given = path.length > 1 ? path.replace(/\/+$/, "").split("/") : path.split("/");
	const found: Record<string, string> = {};
	for (const [index, part] of wanted.entries()) {
		const piece = given[index];
		if (part === "*") {
			const rest = given.slice(index).join("/");
			if (rest === "") return undefined;
			found.rest = decoded(rest);
			return found;
		}
		if (piece === undefined) return undefined;
		if (part.startsWith(":")) {
			if (piece === "") return undefined;
			found[part.slice(1)] = decoded(piece);
		} else if (part !== piece) return undefined;
	}
	return wanted.length === given.length ? found : undefined;
}

/** A place inside this site to go to after signing in; anything else is the overview. */
export function safeNext(next: string | null): string {
	return next !== null && /^\/(?![/\\])/.test(next) ? next : "/overview";
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function subscribe(onChange: () => void): () => void {
	addEventListener("popstate", onChange);
	addEventListener(CHANGED, onChange);
	return () => {
		removeEventListener("popstate", onChange);
		removeEventListener(CHANGED, onChange);
	};
}
