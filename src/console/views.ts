export type { AlertType } from "./alerts/alerts.ts";
export type { AccentColors } from "./brand/palette.ts";
export type { ShownBrand } from "./brand/shown-brand.ts";
export type { ConsoleApi } from "./console-api.ts";
export {
	RIGHTS,
	type Right,
	ROLE_LABELS,
	ROLES,
	type Role,
	rightToManage,
	roleHasRight as can,
} from "./members/roles.ts";
export { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./sign-in/password-length.ts";
export { SPEED_REQUESTS_MIN } from "./usage/model-speed.ts";
