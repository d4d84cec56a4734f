import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";
import { brand } from "./brand.ts";
import { isCurrent, PUBLIC_DESTINATIONS } from "./navigation.ts";
import { LanguageSwitch } from "./parts/language-switch.tsx";
import { SchemeSwitch } from "./parts/scheme-switch.tsx";
import { Link, usePlace } from "./router.tsx";
import { useSession } from "./session.tsx";
import { Brand } from "./shell.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { t } from "./texts.tsx";

/** Contact and texts of the service's operator. */
function BrandLinks() {
	const { support, terms, privacy, imprint } = brand;
	const links = [
		[t("Support"), support],
		[t("Terms"), terms?.url ?? null],
		[t("Privacy"), privacy],
		[t("Imprint"), imprint],
	] as const;
	return links.map(
		([label, href]) =>
			href !== null && (
				<a key={label} href={href}>
					{label}
				</a>
			),
	);
}

/** Frame of public pages. */
export function PublicShell({ children }: { children: ReactNode }) {
	const { path } = usePlace();
	const { config } = useSession();
	return (
		<>
			<a className="skip" href="#main">
				{t("Skip to the page")}
			</a>
			<Group component="header" className="public-top" gap="md">
				<Brand to="/" />
				<Group component="nav" aria-label={t("Main")}>
					{PUBLIC_DESTINATIONS.map(({ to, label, apart }) =>
						apart ? (
							<a key={to} href={to}>
								{label}
							</a>
						) : (
							<Link key={to} to={to} aria-current={isCurrent(to, path) ? "page" : undefined}>
								{label}
							</Link>
						),
					)}
				</Group>
				<Group gap="xs">
					<Button component={Link} to="/sign-in" variant="default" size="xs">
						{t("Sign in")}
					</Button>
					{config.signUp && (
						<Button component={Link} to="/sign-up" size="xs">
							{t("Sign up")}
						</Button>
					)}
				</Group>
			</Group>
			<main className="main" id="main" tabIndex={-1}>
				{children}
			</main>
			<Group component="footer" className="foot small">
				<span>{t("Prepaid inference on open models.")}</span>
				<Link to="/docs/errors">{t("Errors")}</Link>
				<Link to="/docs/limits">{t("Limits")}</Link>
				<a href="/status">{t("Status")}</a>
				<BrandLinks />
				<LanguageSwitch />
				<SchemeSwitch />
			</Group>
			<Shortcuts />
		</>
	);
}
