import type { AnchorHTMLAttributes, ReactNode } from "react";
import { useEffect, useMemo, useState } from "react";
import { parse } from "regexparam";
import { matchRoute, Router, Link as RouterLink } from "wouter";
import { navigate as go, usePathname, useSearch } from "wouter/use-browser-location";

/** What pages know of the address: a path, its query, and links that do not reload. */

export interface Place {
	readonly path: string;
	readonly query: URLSearchParams;
}

/** Around all pages: their links go as `navigate` does. */
export function Routing({ children }: { children: ReactNode }) {
	return <Router aroundNav={(_, to, options) => navigate(to, options)}>{children}</Router>;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
	const before = location.pathname;
	go(to, { replace: options.replace === true });
	// A change of the query alone (a filter) leaves the reader where he is.
	if (location.pathname !== before) scrollTo(0, 0);
}

export function usePlace(): Place {
	const path = usePathname();
	const search = useSearch();
	return useMemo(() => ({ path, query: new URLSearchParams(search) }), [path, search]);
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

/** Opened by a button, or once by a link with `?create=1`: a step back to where that led does not open it again. */
export function useCreating(): [boolean, (open: boolean) => void] {
	const isAsked = usePlace().query.get("create") === "1";
	const [isOpen, setOpen] = useState(false);
	useEffect(() => {
		if (!isAsked) return;
		setOpen(true);
		changeQuery({ create: null });
	}, [isAsked]);
	return [isOpen, setOpen];
}

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
	to: string;
	children?: ReactNode;
}

/** A real anchor: middle click, copy address and screen readers work as anywhere. */
export function Link({ to, ...rest }: LinkProps) {
	return <RouterLink href={to} {...rest} />;
}

/**
 * Matches `/keys/:id` and `/models/*` (the rest of the path, slashes included). Gives the parameters by name, decoded
 * once, the rest under `*`; undefined if the path is another one.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
	const [matches, found] = matchRoute(parse, pattern, path.replace(/(?<=.)\/+$/, ""));
	if (!matches) return undefined;
	return Object.fromEntries(Object.entries(found).map(([name, text]) => [name, decoded(text ?? "")]));
}

/** A place inside this site to go to after signing in; anything else is the overview. */
export function safeNext(next: string | null): string {
	// Browsers read an address without its tabs and line ends: what stands behind them is no safer.
	return next !== null && /^\/(?![/\\])[^\t\n\r]*$/.test(next) ? next : "/overview";
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
