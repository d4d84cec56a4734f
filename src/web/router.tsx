import { type AnchorHTMLAttributes, type ReactNode, useEffect, useMemo, useState } from "react";
import { parse } from "regexparam";
import { matchRoute, Router, Link as RouterLink } from "wouter";
import { navigate as go, usePathname, useSearch } from "wouter/use-browser-location";

/** Path, query and links without reloads. */

export interface Place {
	readonly path: string;
	readonly query: URLSearchParams;
}

/** Wraps all pages: their links use `navigate`. */
export function Routing({ children }: { children: ReactNode }) {
	return <Router aroundNav={(_, to, options) => navigate(to, options)}>{children}</Router>;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
	const before = location.pathname;
	go(to, { replace: options.replace === true });
	// A change of the query alone keeps the scroll position.
	if (location.pathname !== before) scrollTo(0, 0);
}

export function usePlace(): Place {
	const path = usePathname();
	const search = useSearch();
	return useMemo(() => ({ path, query: new URLSearchParams(search) }), [path, search]);
}

/** The query as an object, with a setter; null or "" removes a value. */
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

/** Open state set by a button, or once by `?create=1`, which a step back does not open again. */
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

/** A real anchor, for middle clicks, copied addresses and screen readers. */
export function Link({ to, ...rest }: LinkProps) {
	return <RouterLink href={to} {...rest} />;
}

export const linkTo = (to: string) => (inner: string) => <Link to={to}>{inner}</Link>;

/**
 * Matches `/keys/:id` and `/models/*` (the rest, slashes included). Returns decoded parameters by name, the rest as
 * `id`; undefined without a match.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
	const [matches, found] = matchRoute(parse, pattern, path.replace(/(?<=.)\/+$/, ""));
	if (!matches) return undefined;
	return Object.fromEntries(
		Object.entries(found).map(([name, text]) => [name === "*" ? "id" : name, decoded(text ?? "")]),
	);
}

/** A path within this site to open after signing in; the overview for anything else. */
export function safeNext(next: string | null): string {
	// Browsers ignore tabs and line breaks in addresses, so the check does too.
	return next !== null && /^\/(?![/\\])[^\t\n\r]*$/.test(next) ? next : "/overview";
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
