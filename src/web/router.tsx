import { type AnchorHTMLAttributes, type ReactNode, useEffect, useMemo, useState } from "react";
import { parse } from "regexparam";
import { matchRoute, Router, Link as RouterLink } from "wouter";
import { navigate as go, usePathname, useSearch } from "wouter/use-browser-location";

/** The pages' router: path, query, and links that load no new document. */

/** Context that re-renders the pages after `navigate`. */
export function RouterProvider({ children }: { children: ReactNode }) {
	return <Router aroundNav={(_, to, options) => navigate(to, options)}>{children}</Router>;
}

export function navigate(to: string, options: { replace?: boolean } = {}): void {
	const before = location.pathname;
	go(to, { replace: options.replace === true });
	// If only the query changes, the scroll position stays.
	if (location.pathname !== before) scrollTo(0, 0);
}

export function useRoute() {
	const path = usePathname();
	const search = useSearch();
	return useMemo(() => ({ path, query: new URLSearchParams(search) }), [path, search]);
}

/** Returns the query and a setter, in which null or "" removes a parameter. */
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

/** Tells whether a creation dialog is open. `?create=1` opens it once; the back button does not open it again. */
export function useCreateDialog(): [boolean, (open: boolean) => void] {
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

/** A real `<a>` element, so that middle clicks, copied addresses and screen readers work. */
export const Link = ({ to, ...rest }: LinkProps) => <RouterLink href={to} {...rest} />;

export const linkRenderer = (to: string) => (inner: string) => <Link to={to}>{inner}</Link>;

/**
 * Matches a path with `/keys/:id`, or `/models/*`, where `*` may contain slashes and becomes `id`. Returns the decoded
 * parameters by name; undefined without a match.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
	const [matches, found] = matchRoute(parse, pattern, path.replace(/(?<=.)\/+$/, ""));
	if (!matches) return undefined;
	return Object.fromEntries(
		Object.entries(found).map(([name, text]) => [name === "*" ? "id" : name, decoded(text ?? "")]),
	);
}

/** Returns `next` if it is a path of this site, else `/`, which opens the viewer's first page. */
export function safeNextPath(next: string | null): string {
	// Rejects tabs and line breaks, which browsers ignore: `/\t/host` would lead to another site.
	return next !== null && /^\/(?![/\\])[^\t\n\r]*$/.test(next) ? next : "/";
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
