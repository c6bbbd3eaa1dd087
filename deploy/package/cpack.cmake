# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
set(CPACK_GENERATOR DEB RPM TGZ)
set(CPACK_PACKAGE_NAME rankscope)
set(CPACK_PACKAGE_VENDOR "The rankscope authors")
set(CPACK_PACKAGE_CONTACT "${RANKSCOPE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "explains why distributed training jobs fail, hang or are slow")
set(CPACK_PACKAGE_DESCRIPTION
"A daemon on each GPU node watches the processes of training jobs, their output,
the GPUs, the kernel and Slurm, and gives one verdict per job: one failure out
of a closed list, the rank that caused it, the evidence, what was ruled out and
why, and what to do next. It serves metrics for Prometheus and a status page.
The training script is not changed.
.
Without a daemon, 'rankscope run' wraps one command, and 'rankscope classify'
judges the logs of jobs that have ended.")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # /etc is not below the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded by the first call: slurmrestd, a dcgm-exporter, another instance.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "curl, prometheus, prometheus-alertmanager, slurm-client")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/conffiles
  "/etc/default/rankscope\n/etc/rankscope/config.yaml\n/etc/rankscope/controller.yaml\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_BINARY_DIR}/conffiles;${CMAKE_CURRENT_SOURCE_DIR}/postinst;${CMAKE_CURRENT_SOURCE_DIR}/prerm;${CMAKE_CURRENT_SOURCE_DIR}/postrm")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)")
set(CPACK_RPM_PACKAGE_GROUP "System Environment/Daemons")
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm_post)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm_preun)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm_postun)
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/default/rankscope" "%config(noreplace) /etc/rankscope/config.yaml"
  "%config(noreplace) /etc/rankscope/controller.yaml")
# Folders of the system's own packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /etc /etc/default /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d
  /usr/lib/tmpfiles.d /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/zsh /usr/share/zsh/vendor-completions /usr/share/lintian /usr/share/lintian/overrides /usr/share/man /usr/share/man/man1
  /usr/share/man/man5 /usr/share/man/man8)
include(CPack)
