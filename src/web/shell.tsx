import { ActionIcon, Box, Drawer, Group, Menu, NavLink } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useEffect } from "react";
import { brand } from "./brand.ts";
import {
	destinationsFor,
	isCurrentPage,
	type MenuEntry,
	OPERATOR_DESTINATIONS,
	PUBLIC_DESTINATIONS,
} from "./navigation.ts";
import { ActButton } from "./parts/form.tsx";
import { Icon } from "./parts/icons.tsx";
import { ErrorMessage, Notice } from "./parts/page.tsx";
import { LanguageSwitch, SchemeSwitch } from "./parts/switches.tsx";
import { useAction } from "./resource.ts";
import { Link, navigate, useRoute } from "./router.tsx";
import { useSession } from "./session.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { rich, t } from "./texts.tsx";

/** Frame of signed-in pages: the navigation is a sidebar, or a drawer on narrow screens. */
export function Shell({ children }: { children: ReactNode }) {
	const { config } = useSession();
	const [open, drawer] = useDisclosure(false);
	const { path } = useRoute();
	// biome-ignore lint/correctness/useExhaustiveDependencies: closing follows the path, nothing else
	useEffect(() => drawer.close(), [path]);
	return (
		<div className="shell">
			<a className="skip" href="#main">
				{t("Skip to content")}
			</a>
			<div className="side">
				<nav aria-label={t("Main")}>
					<Side />
				</nav>
			</div>
			<Group component="section" className="top" gap="xs" aria-label={t("Website")}>
				<ActionIcon variant="subtle" color="gray" aria-label={t("Open the menu")} onClick={drawer.open}>
					<Icon name="menu" />
				</ActionIcon>
				<Brand to="/" />
				{/* The menu, which says what of it is made up, is closed here. */}
				{config.demo && (
					<Box component="p" className="demo-mark" ml="auto">
						{t("Demo")}
					</Box>
				)}
			</Group>
			<Drawer
				opened={open}
				onClose={drawer.close}
				size={280}
				title={t("Menu")}
				closeButtonProps={{ "aria-label": t("Close the menu") }}
			>
				<nav aria-label={t("Main")}>
					<Side />
				</nav>
			</Drawer>
			<main className="main" id="main" tabIndex={-1}>
				<ViewBanner />
				{children}
			</main>
			<Shortcuts />
		</div>
	);
}

function ViewBanner() {
	const { me, chooseAccount } = useSession();
	const close = useAction(async (id: string) => {
		await chooseAccount(null);
		navigate(`/operator/accounts/${id}`);
	});
	const account = me?.account;
	if (!account?.viewing) return null;
	return (
		<Box mb="md">
			<Notice kind="warn">
				<Group justify="space-between" gap="xs">
					<span>
						{rich(
							"You see {account} as its customer does, without secrets and files. You cannot make changes. This view is recorded in the audit log.",
							{ account: <strong>{account.name}</strong> },
						)}
					</span>
					<ActButton label={t("Close the view")} onClick={() => void close.run(account.id)} />
				</Group>
				{close.error && <ErrorMessage error={close.error} />}
			</Notice>
		</Box>
	);
}

export function Brand({ to }: { to: string }) {
	return (
		<Link to={to} className="brand">
			{brand.logoUrl === null ? <OurMark /> : <img src={brand.logoUrl} alt="" height={22} />}
			{brand.name}
		</Link>
	);
}

function OurMark() {
	return (
		<svg
			width="18"
			height="18"
			viewBox="0 0 18 18"
			fill="none"
			stroke="currentColor"
			strokeWidth="2"
			aria-hidden="true"
		>
			<path d="M3 16V5M3 7.5h12M9 7.5v3.5M15 7.5v3.5" strokeLinecap="round" />
			<circle cx="3" cy="3.5" r="1.5" />
		</svg>
	);
}

function Side() {
	const { me, config } = useSession();
	return (
		<>
			<Box p="14px 14px 4px">
				<Brand to="/" />
				{config.demo && (
					<Box component="p" className="demo-mark" mt="xs">
						{t("Demo: test credit and generated usage.")}
					</Box>
				)}
			</Box>
			<div className="nav">
				{me?.user.operator && (
					<>
						<Box p="4px 8px" className="small dim">
							{t("Operator")}
						</Box>
						<Destinations items={OPERATOR_DESTINATIONS} />
						<Box p="14px 8px 4px" className="small dim">
							{t("Account")}
						</Box>
					</>
				)}
				<AccountMenu />
				<Destinations items={destinationsFor(me?.account?.role)} />
			</div>
			<Box className="nav" mt="auto">
				<SchemeSwitch />
				<UserMenu />
			</Box>
		</>
	);
}

function Destinations({ items }: { items: readonly MenuEntry[] }) {
	const { path } = useRoute();
	return items.map(({ to, label, icon, apart }) => {
		const shown = { label, leftSection: <Icon name={icon} /> };
		if (apart) return <NavLink key={to} href={to} {...shown} />;
		const current = isCurrentPage(to, path);
		return (
			<NavLink
				key={to}
				component={Link}
				to={to}
				aria-current={current ? "page" : undefined}
				active={current}
				{...shown}
			/>
		);
	});
}

function AccountMenu() {
	const { me, chooseAccount } = useSession();
	const choose = useAction(chooseAccount);
	const account = me?.account;
	if (!account || me.accounts.length < 2) return null;
	return (
		<>
			<Menu width="target" shadow="sm">
				<Menu.Target>
					<NavLink
						component="button"
						aria-label={t("Account: {name}", { name: account.name })}
						label={account.name}
						noWrap
						rightSection={<Icon name="chevron" />}
					/>
				</Menu.Target>
				<Menu.Dropdown>
					<Menu.Label>{t("Account")}</Menu.Label>
					{me.accounts.map((item) => (
						<Menu.Item
							key={item.id}
							onClick={() => void choose.run(item.id)}
							rightSection={item.id === account.id ? <Icon name="check" /> : undefined}
						>
							{item.name}
						</Menu.Item>
					))}
				</Menu.Dropdown>
			</Menu>
			{choose.error && <ErrorMessage error={choose.error} />}
		</>
	);
}

function UserMenu() {
	const { me, signOut } = useSession();
	const leave = useAction(signOut);
	if (!me) return null;
	const { email } = me.user;
	return (
		<>
			{leave.error && <ErrorMessage error={leave.error} />}
			<Menu width={200} position="top-start" shadow="sm">
				<Menu.Target>
					<NavLink
						component="button"
						aria-label={t("You: {email}", { email })}
						label={email}
						noWrap
						leftSection={<Icon name="user" />}
					/>
				</Menu.Target>
				<Menu.Dropdown>
					<Menu.Item component={Link} to="/settings">
						{t("Settings")}
					</Menu.Item>
					<Menu.Item onClick={() => void leave.run()}>{t("Sign out")}</Menu.Item>
				</Menu.Dropdown>
			</Menu>
		</>
	);
}

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

export function PublicShell({ children }: { children: ReactNode }) {
	const { path } = useRoute();
	const { config } = useSession();
	return (
		<>
			<a className="skip" href="#main">
				{t("Skip to content")}
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
							<Link key={to} to={to} aria-current={isCurrentPage(to, path) ? "page" : undefined}>
								{label}
							</Link>
						),
					)}
				</Group>
				<Group gap="xs">
					<ActButton to="/sign-in" label={t("Sign in")} />
					{config.signUp && <ActButton to="/sign-up" look="main" label={t("Sign up")} />}
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
