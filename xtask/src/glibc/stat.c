/* SPDX-License-Identifier: Apache-2.0 */
/* Until glibc 2.33 these were no symbols of the C library but calls of others with a number, here that of x86-64. No header: it may
   define the same names. */
enum { VERSION = 1, NO_DEVICE_VERSION = 0 };

int __xstat(int version, const char *path, void *status);
int __lxstat(int version, const char *path, void *status);
int __fxstat(int version, int file, void *status);
int __fxstatat(int version, int directory, const char *path, void *status, int flags);
int __xmknod(int version, const char *path, unsigned mode, unsigned long *device);
int __xmknodat(int version, int directory, const char *path, unsigned mode, unsigned long *device);

int stat(const char *path, void *status) { return __xstat(VERSION, path, status); }
int stat64(const char *path, void *status) { return __xstat(VERSION, path, status); }
int lstat(const char *path, void *status) { return __lxstat(VERSION, path, status); }
int lstat64(const char *path, void *status) { return __lxstat(VERSION, path, status); }
int fstat(int file, void *status) { return __fxstat(VERSION, file, status); }
int fstat64(int file, void *status) { return __fxstat(VERSION, file, status); }
int fstatat(int directory, const char *path, void *status, int flags) { return __fxstatat(VERSION, directory, path, status, flags); }
int fstatat64(int directory, const char *path, void *status, int flags) { return __fxstatat(VERSION, directory, path, status, flags); }
int mknod(const char *path, unsigned mode, unsigned long device) { return __xmknod(NO_DEVICE_VERSION, path, mode, &device); }
int mknodat(int directory, const char *path, unsigned mode, unsigned long device)
{
    return __xmknodat(NO_DEVICE_VERSION, directory, path, mode, &device);
}
