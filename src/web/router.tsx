import { type AnchorHTMLAttributes, type ReactNode, useEffect, useMemo, useState } from "react";
import { parse } from "regexparam";
import { matchRoute, Router, Link as RouterLink } from "wouter";
import { navigate as go, usePathname, useSearch } from "wouter/use-browser-location";

/** Router: path, query and links without page loads. */

export interface PageLocation {
	readonly path: string;
	readonly query: URLSearchParams;
}

/** Context around all pages, for `navigate`. */
export function Routing({ children }: { children: ReactNode }) {
	return <Router aroundNav={(_, to, options) => navigate(to, options)}>{children}</Router>;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
	const before = location.pathname;
	go(to, { replace: options.replace === true });
	// A change of the query alone keeps the scroll position.
	if (location.pathname !== before) scrollTo(0, 0);
}

export function useRoute(): PageLocation {
	const path = usePathname();
	const search = useSearch();
	return useMemo(() => ({ path, query: new URLSearchParams(search) }), [path, search]);
}

/** The query as an object, with a setter; null or "" removes a value. */
export function useQueryState(): [URLSearchParams, (changes: Record<string, string | null>) => void] {
	const { query } = useRoute();
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

/** Whether a creation dialog is open: by a button, or by `?create=1`, which works once, not on going back. */
export function useCreating(): [boolean, (open: boolean) => void] {
	const isAsked = useRoute().query.get("create") === "1";
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

export const linkRenderer = (to: string) => (inner: string) => <Link to={to}>{inner}</Link>;

/**
 * Matches `/keys/:id`, or `/models/*` with slashes in the rest. Returns decoded parameters by name, the rest as `id`;
 * undefined without a match.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
	const [matches, found] = matchRoute(parse, pattern, path.replace(/(?<=.)\/+$/, ""));
	if (!matches) return undefined;
	return Object.fromEntries(
		Object.entries(found).map(([name, text]) => [name === "*" ? "id" : name, decoded(text ?? "")]),
	);
}

/** Path within this site to open after signing in; `/`, the viewer's first page, if `next` is anything else. */
export function safeNext(next: string | null): string {
	// Rejects tabs and line breaks, which browsers ignore in addresses.
	return next !== null && /^\/(?![/\\])[^\t\n\r]*$/.test(next) ? next : "/";
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
